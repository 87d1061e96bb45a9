"""What the answer is: the reference device in the widest precision; for the reference itself NumPy, SciPy, a formula.

An :class:`Answer` holds exact-as-can-be values, how far they move when the inputs move by one eps (see
:mod:`candelabra_conformance.tolerance`), and the dtypes and shapes that are due.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from candelabra import Tensor
from candelabra.dtypes import dtype, float64
from candelabra.library import Instance, canonical

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
"""In so many directions the inputs are moved to see how far the answer moves: in none where the values are right as it
is, in many before one is called wrong. In a few the terms of a difference may move alike."""


@dataclass(frozen=True)
class Answer:
    """Per output: the values, how far each moves, the dtype that is due. ``length``: inputs per output, for sums.

    ``others`` are what is due beside tensors: numbers, dtypes, None. ``kinds`` are the dtypes in which the values came.
    """

    want: tuple[Array, ...]
    spread: tuple[Array, ...]
    dtypes: tuple[dtype, ...]
    length: int
    others: tuple[Any, ...] = ()
    kinds: tuple[np.dtype[Any], ...] = ()


class NoAnswer(Exception):
    """There is nothing to hold the operator against."""


class Oracle:
    """Answers for one operator after the other; those of the latest are kept."""

    def __init__(self, reference: Instance, subject: Instance) -> None:
        references.load()
        self.reference = reference
        self.itself: Final = reference is subject
        self._kept: dict[Any, Any] = {}
        self._operator = ""

    def answer(self, op: Record, found: Sample, directions: int = DIRECTIONS[0]) -> Answer:
        """The answer for a sample, its arrays being in the dtype that is asked about.

        The inputs are moved in so many ``directions``, those of :data:`DIRECTIONS` in turn.
        """
        key = ("answer", _identity(found), directions)
        answer: Answer = self.remembered(op, key, found, lambda: self._answer(op, found, directions))
        return answer

    def own(self, op: Record, found: Sample) -> tuple[Array, ...]:
        """The answer in the sample's own dtype: of operators whose meaning depends on it (``nextafter``)."""
        values: tuple[Array, ...] = self.remembered(
            op, ("own", _identity(found)), found, lambda: self._values(op, found)
        )
        return values

    def exact(self, op: Record, output: int, samples: list[Sample]) -> bool:
        """Whether every value of an output is a number of its dtype, over samples in float32 or complex64.

        Then no error is due, in any dtype. Moves, comparisons, roundings to integers, extremes are found to be such;
        sums and functions are not.
        """
        if not samples:
            return False
        key = ("exact", output, id(samples[0].of), floating_of(samples[0]))
        return bool(self.remembered(op, key, samples, lambda: self._exact(op, output, samples)))

    def remembered(self, op: Record, key: Any, anchor: Any, make: Any) -> Any:
        """What ``make()`` gave when it was first asked for ``key``, while the operator stays the same.

        ``anchor`` is what the key takes its identity from.
        """
        if op.name != self._operator:
            self._kept.clear()
            self._operator = op.name
        if key not in self._kept:
            self._kept[key] = (make(), anchor)  # the anchor keeps the identity in the key alive
        return self._kept[key][0]

    # -- how ----------------------------------------------------------------------------------------------------------
    def _answer(self, op: Record, found: Sample, directions: int) -> Answer:
        widened = self._widened(op, found)
        want, others = self._result(op, widened)
        due = self._dtypes(op, found, want)
        kinds = tuple(w.dtype for w in want)
        spread = [np.zeros(w.shape) for w in want]
        if op.view or as_given(op):  # it computes nothing, and may look at the bits; or its meaning hangs on the dtype
            return Answer(tuple(wide(w) for w in want), tuple(spread), due, 1, others, kinds)
        floats = [d for d in due if d.is_floating_point or d.is_complex]
        movable = with_operands(op, widened, _as_float) if floats and floating_of(found) is None else widened
        d = floating_of(found) or (floats[0] if floats else None)
        if d is not None and not op.random:
            for seed in range(directions):
                moved = self._moved(op, perturbed(op, movable, eps(d), seed), want)
                spread = [np.maximum(s, _distance(m, w)) for s, m, w in zip(spread, moved, want, strict=True)]
        return Answer(want, tuple(spread), due, terms(op, found, want), others, kinds)

    def _widened(self, op: Record, found: Sample) -> Sample:
        """The sample in the widest precision, unless its meaning hangs on its own."""
        return found if op.view or op.name in references.AS_GIVEN else with_arrays(found, wide)

    def _moved(self, op: Record, found: Sample, want: tuple[Array, ...]) -> tuple[Array, ...]:
        """The values of a moved sample; where it has left the operator's domain, those of the sample itself."""
        try:
            moved = self._values(op, found)
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            return want
        return moved if len(moved) == len(want) else want

    def _values(self, op: Record, found: Sample) -> tuple[Array, ...]:
        return self._result(op, found)[0]

    def _result(self, op: Record, found: Sample) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
        """The values, and what is due beside them."""
        if not self.itself:
            args, kwargs = mapped((found.args, dict(found.kwargs)), self._placed)
            return split(found, called(op, args, kwargs, self.reference), self.reference)
        function = references.REFERENCES.get(op.name)
        if function is None:
            raise NoAnswer(
                f"{op.name!r} has no reference: add a NumPy or SciPy function to candelabra_conformance/references, "
                "or the plugin that brings it brings one"
            )
        if isinstance(op, CallableRecord):
            return self._of_callable(function, found)
        given = self.canonical(op, found)
        if op.name in references.EXTENDED:
            given = tuple(mapped(a, _longest) if isinstance(a, (np.ndarray, list, tuple)) else a for a in given)
        with np.errstate(all="ignore"):
            result = function(*given)
        several = result if isinstance(result, (tuple, list)) else (result,)
        values = tuple(np.asarray(r) for r in several)
        if found.of is None:
            return values, ()
        moved = [to_device(wide(v), self.reference) for v in values]
        built = op.schema.result(*moved) if op.schema.result is not None else moved[0]
        return split(replace(found, of=None), found.of(built), self.reference)

    def _of_callable(self, function: Any, found: Sample) -> tuple[tuple[Array, ...], tuple[Any, ...]]:
        """What the reference of a public callable gives, which is called as the callable is: with arrays for tensors,
        by position and by keyword. Its arrays are values, numbers are what is due beside tensors."""
        device = self.reference.device
        with device, np.errstate(all="ignore"):
            result = function(*at(found.args, device), **at(dict(found.kwargs), device))
            if found.of is not None:
                result = found.of(_on_device(result, self.reference))
        return split(replace(found, of=None), _arrays_of(result), self.reference)

    def canonical(self, op: Record, found: Sample) -> tuple[Any, ...]:
        """The sample's arguments by position, as the record declares them, arrays for tensors."""
        args, kwargs = mapped((found.args, dict(found.kwargs)), self._placed)
        device = self.reference.device
        with device:
            given = canonical(op.form("function"), at(args, device), at(kwargs, device))
        return tuple(_hosted(a) for a in given)

    def _placed(self, array: Array) -> Tensor:
        return to_device(array, self.reference)

    def _dtypes(self, op: Record, found: Sample, want: tuple[Array, ...]) -> tuple[dtype, ...]:
        args, kwargs = mapped((found.args, dict(found.kwargs)), self._placed)
        result = called(op, args, kwargs, self.reference)
        if found.of is not None:
            inner = floating_of(found) or next((d for d in dtypes_of(result) if d.is_floating_point), None)
            return tuple(narrowed(device_dtype(w.dtype), inner) for w in want)
        return dtypes_of(result)

    def _exact(self, op: Record, output: int, samples: list[Sample]) -> bool:
        seen = False
        for found in samples:
            if floating_of(found) is None and any(True for _ in arrays((found.args, dict(found.kwargs)))):
                continue  # of integers the answer comes in the result's own dtype: that it fits says nothing
            answer = self.answer(op, found)
            if output >= len(answer.want):
                continue  # a public callable may return more on request
            d = answer.dtypes[output]
            if d.to_real() is float64:  # the oracle's own precision, in which it cannot tell (float_power)
                return False
            if d.is_floating_point or d.is_complex:
                values = answer.want[output]
                seen |= bool(np.any(values != np.round(values)))
                if not representable(values, d):
                    return False
        return seen


def as_given(op: Record) -> bool:
    """Whether the results of a public callable hang on the dtype itself, so that there is no wider answer."""
    if not isinstance(op, CallableRecord):
        return False
    references.load()
    return op.name in references.AS_GIVEN


def dtypes_of(result: Any) -> tuple[dtype, ...]:
    """The dtypes of a result's tensors and arrays."""
    every = (v for v in leaves(result) if isinstance(v, (Tensor, np.ndarray)))
    return tuple(v.dtype if isinstance(v, Tensor) else device_dtype(v.dtype) for v in every)


def _arrays_of(result: Any) -> Any:
    """A reference's result with NumPy's scalars as arrays without dims."""
    if isinstance(result, (list, tuple)):
        return [_arrays_of(part) for part in result]
    return np.asarray(result) if isinstance(result, np.generic) else result


def _on_device(result: Any, instance: Instance) -> Any:
    """A reference's result with a tensor, in the widest precision, for each array."""
    return mapped(_arrays_of(result), lambda array: to_device(wide(array), instance))


def _as_float(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind in "biu" else array


def _distance(moved: Array, want: Array) -> Array:
    """How far apart; 0 where both are the same special value, infinite where only one is."""
    if moved.shape != want.shape:
        return np.zeros(want.shape)
    if want.dtype.kind in "biu":
        return np.where(moved == want, 0.0, np.inf)
    with np.errstate(all="ignore"):
        apart = np.abs(moved - want)
        same = (moved == want) | (np.isnan(moved) & np.isnan(want))
    with np.errstate(over="ignore"):
        # From 80 bits, in which a distance may be larger than any float64.
        distance: Array = np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart)).astype(np.float64)
    return distance


def _longest(array: Array) -> Array:
    kinds = {"f": np.longdouble, "c": np.clongdouble}
    return array.astype(kinds[array.dtype.kind]) if array.dtype.kind in kinds else array


def _hosted(value: Any) -> Any:
    if isinstance(value, Tensor):
        return to_host(value)
    if isinstance(value, (list, tuple)) and any(isinstance(v, Tensor) or v is None for v in value):
        return type(value)(_hosted(v) for v in value)
    return value


def _identity(found: Sample) -> Any:
    return id(found)
