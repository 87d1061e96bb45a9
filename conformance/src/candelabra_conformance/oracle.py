"""The oracle: the reference device in the widest precision, or for the reference itself NumPy, SciPy or a formula.

On the reference device, the kernels of its owner give the answers, not those that other distributions contribute.

An :class:`Answer` contains the most exact values, their change when the inputs change by one eps (see
:mod:`candelabra_conformance.tolerance`), and the expected dtypes and shapes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

import numpy as np
from candelabra import Tensor
from candelabra.dtypes import dtype, float64
from candelabra.library import Instance, canonical, own_kernels

from candelabra_conformance.calling import at, called, leaves, split
from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.perturbation import (
    floating_of,
    narrowed,
    perturbed,
    terms,
    with_arrays,
    with_operands,
)
from candelabra_conformance.records import CallableRecord, Record
from candelabra_conformance.references import registry as references
from candelabra_conformance.samples.sample import Sample, arrays, mapped
from candelabra_conformance.tolerance import eps, representable, wide
from candelabra_conformance.transport import Array, to_device, to_host

DIRECTIONS: Final = (0, 1, 24)
"""The numbers of random directions in which the inputs are perturbed to measure the change of the answer. The first one
suffices if the values are right without it; the last one is used before a value is wrong. With few directions, the
terms of a difference may change equally."""
LARGE: Final = 2.0**22
"""The number of eps of a second perturbation in the oracle's own precision, for the last number of directions."""


@dataclass(frozen=True)
class Answer:
    """Per output: the values, the change of each, the expected dtype. ``length``: inputs per output, for sums.

    ``others`` are expected results other than tensors: numbers, dtypes, None. ``kinds`` are the dtypes of the values.
    """

    want: tuple[Array, ...]
    sensitivity: tuple[Array, ...]
    dtypes: tuple[dtype, ...]
    length: int
    others: tuple[Any, ...] = ()
    kinds: tuple[np.dtype[Any], ...] = ()


class NoAnswer(Exception):
    """There is no reference for the operator."""


class Oracle:
    """Computes answers. Those of the latest operator are cached.

    ``itself``: the kernels under test are those of the reference, whose answers come from NumPy, SciPy or formulas.
    """

    def __init__(self, reference: Instance, itself: bool) -> None:
        references.load()
        self.reference = reference
        self.itself: Final = itself
        self._kept: dict[Any, Any] = {}
        self._operator = ""

    def answer(self, op: Record, sample: Sample, directions: int = DIRECTIONS[0]) -> Answer:
        """Return the answer for a sample, whose arrays have the dtype under test.

        The inputs are perturbed in ``directions`` directions, one of the numbers of :data:`DIRECTIONS`. In the oracle's
        own precision, its rounding may hide the effect of one eps, so the last number of directions also uses larger
        perturbations.
        """
        key = ("answer", _identity(sample), directions)
        answer: Answer = self.remembered(op, key, sample, lambda: self._answer(op, sample, directions))
        return answer

    def own(self, op: Record, sample: Sample) -> tuple[Array, ...]:
        """Return the answer in the sample's own dtype, for operators that depend on it (``nextafter``)."""
        values: tuple[Array, ...] = self.remembered(
            op, ("own", _identity(sample)), sample, lambda: self._values(op, sample)
        )
        return values

    def exact(self, op: Record, output: int, samples: list[Sample]) -> bool:
        """Return whether every value of an output is representable in its dtype, for samples in float32 or complex64.

        Then no rounding error is allowed in any dtype. This holds for copies, comparisons, rounding to integers and
        extremes, but not for sums and functions.
        """
        if not samples:
            return False
        key = ("exact", output, id(samples[0].of), floating_of(samples[0]))
        return bool(self.remembered(op, key, samples, lambda: self._exact(op, output, samples)))

    def remembered(self, op: Record, key: Any, anchor: Any, make: Any) -> Any:
        """Return ``make()``, run with the owner's kernels and cached under ``key`` as long as the operator stays the
        same.

        ``anchor`` is the object whose id is part of the key.
        """
        if op.name != self._operator:
            self._kept.clear()
            self._operator = op.name
        if key not in self._kept:
            with own_kernels():
                self._kept[key] = (make(), anchor)  # the anchor keeps the id in the key valid
        return self._kept[key][0]

    # -- options ------------------------------------------------------------------------------------------------------
    def _answer(self, op: Record, sample: Sample, directions: int) -> Answer:
        widened = self._widened(op, sample)
        want, others = self._result(op, widened)
        due = self._dtypes(op, sample, want)
        kinds = tuple(w.dtype for w in want)
        sensitivity = [np.zeros(w.shape) for w in want]
        if op.view or as_given(op):  # it computes nothing and may read the bits, or it depends on the dtype
            return Answer(tuple(wide(w) for w in want), tuple(sensitivity), due, 1, others, kinds)
        floats = [d for d in due if d.is_floating_point or d.is_complex]
        movable = with_operands(op, widened, _as_float) if floats and floating_of(sample) is None else widened
        d = floating_of(sample) or (floats[0] if floats else None)
        if d is not None and not op.random:
            own = directions == DIRECTIONS[-1] and eps(d) <= eps(float64)
            for factor, seed in product((1.0, LARGE) if own else (1.0,), range(directions)):
                moved = self._moved(op, perturbed(op, movable, factor * eps(d), seed), want)
                changes = [_change(m, w, factor) for m, w in zip(moved, want, strict=True)]
                sensitivity = [np.maximum(s, c) for s, c in zip(sensitivity, changes, strict=True)]
        return Answer(want, tuple(sensitivity), due, terms(op, sample, want), others, kinds)

    def _widened(self, op: Record, sample: Sample) -> Sample:
        """Return the sample in the widest precision, unless the operator depends on the dtype."""
        return sample if op.view or op.name in references.AS_GIVEN else with_arrays(sample, wide)

    def _moved(self, op: Record, sample: Sample, want: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return the values of a perturbed sample, or those of the sample itself outside the operator's domain."""
        try:
            moved = self._values(op, sample)
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            return want
        return moved if len(moved) == len(want) else want

    def _values(self, op: Record, sample: Sample) -> tuple[Array, ...]:
        return self._result(op, sample)[0]

    def _result(self, op: Record, sample: Sample) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
        """Return the values, and the expected results other than tensors."""
        if not self.itself:
            args, kwargs = mapped((sample.args, dict(sample.kwargs)), self._placed)
            return split(sample, called(op, args, kwargs, self.reference), self.reference)
        function = references.REFERENCES.get(op.name)
        if function is None:
            raise NoAnswer(
                f"{op.name!r} has no reference: add a NumPy or SciPy function to candelabra_conformance/references, "
                "or to the plugin that declares it"
            )
        if isinstance(op, CallableRecord):
            return self._of_callable(function, sample)
        given = self.canonical(op, sample)
        if op.name in references.EXTENDED:
            given = tuple(mapped(a, _longest) if isinstance(a, (np.ndarray, list, tuple)) else a for a in given)
        with np.errstate(all="ignore"):
            result = function(*given)
        several = result if isinstance(result, (tuple, list)) else (result,)
        values = tuple(np.asarray(r) for r in several)
        if sample.of is None:
            return values, ()
        moved = [to_device(wide(v), self.reference) for v in values]
        built = op.schema.result(*moved) if op.schema.result is not None else moved[0]
        return split(replace(sample, of=None), sample.of(built), self.reference)

    def _of_callable(self, function: Any, sample: Sample) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
        """Return the results of a public callable's reference, which is called like the callable but with arrays."""
        device = self.reference.device
        with device, np.errstate(all="ignore"):
            result = function(*at(sample.args, device), **at(dict(sample.kwargs), device))
            if sample.of is not None:
                result = sample.of(_on_device(result, self.reference))
        return split(replace(sample, of=None), _arrays_of(result), self.reference)

    def canonical(self, op: Record, sample: Sample) -> tuple[Any, ...]:
        """Return the sample's arguments by position, in the order of the record, with arrays for tensors."""
        args, kwargs = mapped((sample.args, dict(sample.kwargs)), self._placed)
        device = self.reference.device
        with device:
            given = canonical(op.form("function"), at(args, device), at(kwargs, device))
        return tuple(_hosted(a) for a in given)

    def _placed(self, array: Array) -> Tensor:
        return to_device(array, self.reference)

    def _dtypes(self, op: Record, sample: Sample, want: tuple[Array, ...]) -> tuple[dtype, ...]:
        args, kwargs = mapped((sample.args, dict(sample.kwargs)), self._placed)
        result = called(op, args, kwargs, self.reference)
        if sample.of is not None:
            inner = floating_of(sample) or next((d for d in dtypes_of(result) if d.is_floating_point), None)
            return tuple(narrowed(device_dtype(w.dtype), inner) for w in want)
        return dtypes_of(result)

    def _exact(self, op: Record, output: int, samples: list[Sample]) -> bool:
        seen = False
        for found in samples:
            if floating_of(found) is None and any(True for _ in arrays((found.args, dict(found.kwargs)))):
                continue  # for integers the answer has the dtype of the result, so it always fits
            answer = self.answer(op, found)
            if output >= len(answer.want):
                continue  # a public callable may return more on request
            d = answer.dtypes[output]
            if d.to_real() is float64:  # the oracle's own precision (float_power)
                return False
            if d.is_floating_point or d.is_complex:
                values = answer.want[output]
                # The rest of a cancellation (Qᴴ Q of a factor) proves nothing: it may have few bits by chance.
                visible = np.abs(values) > eps(d) * np.max(np.abs(values), initial=0.0)
                seen |= bool(np.any(visible & (values != np.round(values))))
                if not representable(values, d):
                    return False
        return seen


def as_given(op: Record) -> bool:
    """Return whether the results of a public callable depend on the dtype, so that there is no wider answer."""
    if not isinstance(op, CallableRecord):
        return False
    references.load()
    return op.name in references.AS_GIVEN


def dtypes_of(result: Any) -> tuple[dtype, ...]:
    """Return the dtypes of a result's tensors and arrays."""
    every = (v for v in leaves(result) if isinstance(v, (Tensor, np.ndarray)))
    return tuple(v.dtype if isinstance(v, Tensor) else device_dtype(v.dtype) for v in every)


def _arrays_of(result: Any) -> Any:
    """Return a reference's result with NumPy's scalars as arrays without dims."""
    if isinstance(result, (list, tuple)):
        return [_arrays_of(part) for part in result]
    return np.asarray(result) if isinstance(result, np.generic) else result


def _on_device(result: Any, instance: Instance) -> Any:
    """Return a reference's result with arrays replaced by tensors in the widest precision."""
    return mapped(_arrays_of(result), lambda array: to_device(wide(array), instance))


def _as_float(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind in "biu" else array


def _distance(moved: Array, want: Array) -> Array:
    """Return the distances; 0 where both are the same special value, infinite where only one is special."""
    if moved.shape != want.shape:
        return np.zeros(want.shape)
    if want.dtype.kind in "biu":
        return np.where(moved == want, 0.0, np.inf)
    with np.errstate(all="ignore"):
        apart = np.abs(moved - want)
        same = (moved == want) | (np.isnan(moved) & np.isnan(want))
    with np.errstate(over="ignore"):
        # Extended precision (80 bits) holds distances that overflow in float64.
        distance: Array = np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart)).astype(np.float64)
    return distance


def _change(moved: Array, want: Array, factor: float) -> Array:
    """Return the change of an answer for a perturbation by an eps, from that by ``factor`` eps.

    A large perturbation may leave the operator's domain, which proves nothing about a small one.
    """
    distance = _distance(moved, want)
    return distance if factor == 1 else np.where(np.isfinite(distance), distance / factor, 0.0)


def _longest(array: Array) -> Array:
    kinds = {"f": np.longdouble, "c": np.clongdouble}
    return array.astype(kinds[array.dtype.kind]) if array.dtype.kind in kinds else array


def _hosted(value: Any) -> Any:
    if isinstance(value, Tensor):
        return to_host(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) or v is None for v in value):
        return type(value)(_hosted(v) for v in value)
    return value


def _identity(sample: Sample) -> Any:
    return id(sample)
