"""What one call should have given: the reference device on copies of its arguments, in their dtype and in a wider one.

Both answers count. The wide one is nearer to the truth; where they part by more than the bound (an overflow on the way,
a quotient's floor, the next number after) the operator's meaning hangs on its dtype, and the reference in that dtype is
an answer as good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from candelabra import device as Device
from candelabra.dtypes import dtype
from candelabra.library import Instance, open_device, plugins

from candelabra_conformance.calling import called, tensors
from candelabra_conformance.comparing import wrong
from candelabra_conformance.oracle import as_given
from candelabra_conformance.perturbation import floating_of, perturbed, with_arrays
from candelabra_conformance.records import Record
from candelabra_conformance.samples.sample import HERE, Sample, arrays, mapped
from candelabra_conformance.tolerance import bound, eps, rounded, wide
from candelabra_conformance.transport import Array, to_device, to_host

DIRECTIONS: Final = 2
"""So many perturbations of the inputs show how far an answer moves."""
RANDOM_ULP: Final[dict[str, float]] = {"random_normal": 1.0, "random_exponential": 1.0}
"""Random numbers are equal to the bit but for those of a logarithm, which devices round by themselves (sections 7 and 8
of the specification of random numbers)."""
WITHOUT_FLOAT64: Final = 16.0
"""The same on devices that have no float64 (section 11)."""


@dataclass(frozen=True)
class Expected:
    """Per output: values in the call's own dtype and in the widest, how far the wide ones move, the dtype due."""

    own: tuple[Array, ...]
    want: tuple[Array, ...]
    spread: tuple[Array, ...]
    dtypes: tuple[dtype, ...]
    length: int
    record: Record

    def rounded(self) -> tuple[Array, ...]:
        """The wide values in the dtypes that are due."""
        return tuple(rounded(w, d) for w, d in zip(self.want, self.dtypes, strict=True))

    def allowed(self) -> tuple[Array, ...]:
        """The error that is allowed of each element: none of an infinity."""
        limits = []
        for want, spread, d in zip(self.want, self.spread, self.dtypes, strict=True):
            floating = d.is_floating_point or d.is_complex
            limit = bound(want, spread, self.length, d) if floating else np.zeros(want.shape)
            limits.append(np.where(np.isfinite(wide(rounded(want, d))), limit, 0.0))
        return tuple(limits)

    def wrong(self, place: int, got: Array, d: dtype) -> Array:
        """True where an output's value is neither of the two answers, within the bound of dtype ``d``."""
        own, want, spread = self.own[place], self.want[place], self.spread[place]
        bad = wrong(got, wide(own), spread, self.length, d)
        return bad if want.shape != own.shape else bad & wrong(got, want, spread, self.length, d)


def answer(record: Record, args: Sequence[Any], kwargs: Mapping[str, Any], reference: Any = None) -> Expected:
    """What the reference device makes of a call whose tensors are given as arrays.

    ``reference`` is a device, the installation's reference unless given. Raises what the operator raises there.
    """
    instance = open_device(plugins.reference_device() if reference is None else reference)
    given = Sample(tuple(_there(a) for a in args), {k: _there(v) for k, v in kwargs.items()})
    own, dtypes = _values(record, given, instance)
    alone = Expected(own, own, tuple(np.zeros(v.shape) for v in own), dtypes, 1, record)
    d = floating_of(given)
    widened = with_arrays(given, wide)
    if record.random or as_given(record) or d is None or not _holds(instance, widened):
        return alone
    try:
        want = _values(record, widened, instance)[0]
        moved = [_values(record, perturbed(record, widened, eps(d), seed), instance)[0] for seed in range(DIRECTIONS)]
    except Exception:  # what it takes hangs on the dtype (its bits are read as another), or on the exact values
        return alone
    spread = [np.zeros(w.shape) for w in want]
    for values in moved:
        spread = [np.maximum(s, _distance(m, w)) for s, m, w in zip(spread, values, want, strict=True)]
    elements = sum(a.size for a in arrays((given.args, dict(given.kwargs))))
    length = max(1, elements // max(1, max((w.size for w in want), default=1)))
    return Expected(own, want, tuple(spread), dtypes, length, record)


def _values(record: Record, given: Sample, instance: Instance) -> tuple[tuple[Array, ...], tuple[dtype, ...]]:
    args, kwargs = mapped((given.args, dict(given.kwargs)), lambda a: to_device(a, instance))
    results = tensors(called(record, args, kwargs, instance))
    return tuple(to_host(r) for r in results), tuple(r.dtype for r in results)


def _there(value: Any) -> Any:
    return HERE if isinstance(value, (Instance, Device)) else value


def _holds(instance: Instance, given: Sample) -> bool:
    """Whether the reference stores the wide dtypes."""
    names = {d.name for d in instance.keys}
    return all(a.dtype.name in names for a in arrays((given.args, dict(given.kwargs))))


def _distance(moved: Array, want: Array) -> Array:
    """How far apart; 0 where both are the same special value, infinite where only one is, 0 of other shapes."""
    if moved.shape != want.shape:  # the shape depends on the data: what moved is another result
        return np.zeros(want.shape)
    if want.dtype.kind in "biu":
        return np.zeros(want.shape)
    with np.errstate(all="ignore"):
        apart = np.abs(moved - want)
        same = (moved == want) | (np.isnan(moved) & np.isnan(want))
    distance: Array = np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart)).astype(np.float64)
    return distance
