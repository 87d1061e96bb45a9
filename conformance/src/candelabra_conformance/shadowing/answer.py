"""The expected result of one call: that of the reference device on copies of the arguments, in their dtype and in a
wider one.

Both results are valid. The wide one is more accurate. If they differ by more than the bound (an intermediate overflow,
the floor of a quotient, the next number after), the operator depends on its dtype, and the reference in that dtype is
equally valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from candelabra import device as Device
from candelabra.dtypes import dtype
from candelabra.library import Instance, open_device, own_kernels, plugins

from candelabra_conformance.calling import called, tensors
from candelabra_conformance.comparing import wrong
from candelabra_conformance.oracle import as_given
from candelabra_conformance.perturbation import floating_of, perturbed, with_arrays
from candelabra_conformance.records import Record
from candelabra_conformance.samples.sample import HERE, Sample, arrays, mapped
from candelabra_conformance.tolerance import bound, eps, rounded, wide
from candelabra_conformance.transport import Array, to_device, to_host

DIRECTIONS: Final = 2
"""The number of perturbations of the inputs from which the change of an answer is measured."""
RANDOM_ULP: Final[dict[str, float]] = {"random_normal": 1.0, "random_exponential": 1.0}
"""Random numbers are equal to the bit, except those computed with a logarithm, which each device rounds differently
(sections 7 and 8 of the specification of random numbers)."""
WITHOUT_FLOAT64: Final = 16.0
"""The same bound for devices without float64 (section 11)."""


@dataclass(frozen=True)
class Expected:
    """Per output: values in the call's own dtype and in the widest, the sensitivity of the latter, and the expected
    dtype."""

    own: tuple[Array, ...]
    want: tuple[Array, ...]
    sensitivity: tuple[Array, ...]
    dtypes: tuple[dtype, ...]
    length: int
    record: Record

    def rounded(self) -> tuple[Array, ...]:
        """Return the wide values, rounded to the expected dtypes."""
        return tuple(rounded(w, d) for w, d in zip(self.want, self.dtypes, strict=True))

    def allowed(self) -> tuple[Array, ...]:
        """Return the permitted error of each element; it is 0 for an infinity."""
        limits = []
        for want, sensitivity, d in zip(self.want, self.sensitivity, self.dtypes, strict=True):
            floating = d.is_floating_point or d.is_complex
            limit = bound(want, sensitivity, self.length, d) if floating else np.zeros(want.shape)
            limits.append(np.where(np.isfinite(wide(rounded(want, d))), limit, 0.0))
        return tuple(limits)

    def wrong(self, output: int, got: Array, d: dtype) -> Array:
        """Return True for each value of an output that differs from both answers by more than the bound of dtype
        ``d``."""
        own, want, sensitivity = self.own[output], self.want[output], self.sensitivity[output]
        bad = wrong(got, wide(own), sensitivity, self.length, d)
        return bad if want.shape != own.shape else bad & wrong(got, want, sensitivity, self.length, d)


@own_kernels()
def answer(record: Record, args: Sequence[Any], kwargs: Mapping[str, Any], reference: Any = None) -> Expected:
    """Return the result of the reference device for a call with arrays in output of tensors.

    ``reference`` is a device, by default the installation's reference device. The kernels of its owner serve. Errors of
    the operator propagate.
    """
    instance = open_device(plugins.reference_device() if reference is None else reference)
    sample = Sample(tuple(_on_reference(a) for a in args), {k: _on_reference(v) for k, v in kwargs.items()})
    own, dtypes = _values(record, sample, instance)
    alone = Expected(own, own, tuple(np.zeros(v.shape) for v in own), dtypes, 1, record)
    d = floating_of(sample)
    widened = with_arrays(sample, wide)
    if record.random or as_given(record) or d is None or not _holds(instance, widened):
        return alone
    try:
        want = _values(record, widened, instance)[0]
        moved = [_values(record, perturbed(record, widened, eps(d), seed), instance)[0] for seed in range(DIRECTIONS)]
    except Exception:  # the arguments depend on the dtype (its bits are read as another dtype), or on the exact values
        return alone
    sensitivity = [np.zeros(w.shape) for w in want]
    for values in moved:
        sensitivity = [np.maximum(s, _distance(m, w)) for s, m, w in zip(sensitivity, values, want, strict=True)]
    elements = sum(a.size for a in arrays((sample.args, dict(sample.kwargs))))
    length = max(1, elements // max(1, max((w.size for w in want), default=1)))
    return Expected(own, want, tuple(sensitivity), dtypes, length, record)


def _values(record: Record, sample: Sample, instance: Instance) -> tuple[tuple[Array, ...], tuple[dtype, ...]]:
    args, kwargs = mapped((sample.args, dict(sample.kwargs)), lambda a: to_device(a, instance))
    results = tensors(called(record, args, kwargs, instance))
    return tuple(to_host(r) for r in results), tuple(r.dtype for r in results)


def _on_reference(value: Any) -> Any:
    return HERE if isinstance(value, (Instance, Device)) else value


def _holds(instance: Instance, sample: Sample) -> bool:
    """Return whether the reference stores the wide dtypes."""
    names = {d.name for d in instance.keys}
    return all(a.dtype.name in names for a in arrays((sample.args, dict(sample.kwargs))))


def _distance(moved: Array, want: Array) -> Array:
    """Return the distances: 0 for equal special values and different shapes, infinite if only one value is special."""
    if moved.shape != want.shape:  # the shape depends on the data, so the perturbed result cannot be compared
        return np.zeros(want.shape)
    if want.dtype.kind in "biu":
        return np.zeros(want.shape)
    with np.errstate(all="ignore"):
        apart = np.abs(moved - want)
        same = (moved == want) | (np.isnan(moved) & np.isnan(want))
    distance: Array = np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart)).astype(np.float64)
    return distance
