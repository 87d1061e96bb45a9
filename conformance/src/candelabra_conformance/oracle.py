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
from candelabra.library import DIFFERENTIABLE, Instance, Operator, canonical

from candelabra_conformance.calling import at, called, determined, tensors
from candelabra_conformance.numpy_dtypes import device_dtype
from candelabra_conformance.references import registry as references
from candelabra_conformance.samples.sample import Sample, arrays, mapped
from candelabra_conformance.tolerance import eps, representable, wide
from candelabra_conformance.transport import Array, to_device, to_host

DIRECTIONS: Final = (0, 1, 24)
"""In so many directions the inputs are moved to see how far the answer moves: in none where the values are right as it
is, in many before one is called wrong. In a few the terms of a difference may move alike."""


@dataclass(frozen=True)
class Answer:
    """Per output: the values, how far each moves, the dtype that is due. ``length``: inputs per output, for sums."""

    want: tuple[Array, ...]
    spread: tuple[Array, ...]
    dtypes: tuple[dtype, ...]
    length: int


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

    def answer(self, op: Operator[..., Any], found: Sample, directions: int = DIRECTIONS[0]) -> Answer:
        """The answer for a sample, its arrays being in the dtype that is asked about.

        The inputs are moved in so many ``directions``, those of :data:`DIRECTIONS` in turn.
        """
        key = ("answer", _identity(found), directions)
        answer: Answer = self.remembered(op, key, found, lambda: self._answer(op, found, directions))
        return answer

    def own(self, op: Operator[..., Any], found: Sample) -> tuple[Array, ...]:
        """The answer in the sample's own dtype: of operators whose meaning depends on it (``nextafter``)."""
        values: tuple[Array, ...] = self.remembered(
            op, ("own", _identity(found)), found, lambda: self._values(op, found)
        )
        return values

    def exact(self, op: Operator[..., Any], output: int, samples: list[Sample]) -> bool:
        """Whether every value of an output is a number of its dtype, over samples in float32 or complex64.

        Then no error is due, in any dtype. Moves, comparisons, roundings to integers, extremes are found to be such;
        sums and functions are not.
        """
        if not samples:
            return False
        key = ("exact", output, id(samples[0].of), floating_of(samples[0]))
        return bool(self.remembered(op, key, samples, lambda: self._exact(op, output, samples)))

    def remembered(self, op: Operator[..., Any], key: Any, anchor: Any, make: Any) -> Any:
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
    def _answer(self, op: Operator[..., Any], found: Sample, directions: int) -> Answer:
        widened = self._widened(op, found)
        want = self._values(op, widened)
        due = self._dtypes(op, found, want)
        spread = [np.zeros(w.shape) for w in want]
        if op.view:  # it computes nothing, and may look at the bits
            return Answer(tuple(wide(w) for w in want), tuple(spread), due, 1)
        floats = [d for d in due if d.is_floating_point or d.is_complex]
        movable = with_operands(op, widened, _as_float) if floats and floating_of(found) is None else widened
        d = floating_of(found) or (floats[0] if floats else None)
        if d is not None and not op.random:
            for seed in range(directions):
                moved = self._moved(op, perturbed(op, movable, eps(d), seed), want)
                spread = [np.maximum(s, _distance(m, w)) for s, m, w in zip(spread, moved, want, strict=True)]
        return Answer(want, tuple(spread), due, terms(op, found, want))

    def _widened(self, op: Operator[..., Any], found: Sample) -> Sample:
        """The sample in the widest precision, unless its meaning hangs on its own."""
        return found if op.view or op.name in references.AS_GIVEN else with_arrays(found, wide)

    def _moved(self, op: Operator[..., Any], found: Sample, want: tuple[Array, ...]) -> tuple[Array, ...]:
        """The values of a moved sample; where it has left the operator's domain, those of the sample itself."""
        try:
            return self._values(op, found)
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            return want

    def _values(self, op: Operator[..., Any], found: Sample) -> tuple[Array, ...]:
        if not self.itself:
            args, kwargs = mapped((found.args, dict(found.kwargs)), self._placed)
            return determined(found, called(op, args, kwargs, self.reference), self.reference)
        function = references.REFERENCES.get(op.name)
        if function is None:
            raise NoAnswer(
                f"operator {op.name!r} has no reference: add a NumPy or SciPy function to "
                "candelabra_conformance/references, or the plugin that brings the operator brings one"
            )
        given = self.canonical(op, found)
        if op.name in references.EXTENDED:
            given = tuple(mapped(a, _longest) if isinstance(a, (np.ndarray, list, tuple)) else a for a in given)
        with np.errstate(all="ignore"):
            result = function(*given)
        several = result if isinstance(result, (tuple, list)) else (result,)
        values = tuple(np.asarray(r) for r in several)
        if found.of is None:
            return values
        moved = [to_device(wide(v), self.reference) for v in values]
        built = op.schema.result(*moved) if op.schema.result is not None else moved[0]
        return tuple(to_host(t) for t in tensors(found.of(built)))

    def canonical(self, op: Operator[..., Any], found: Sample) -> tuple[Any, ...]:
        """The sample's arguments by position, as the record declares them, arrays for tensors."""
        args, kwargs = mapped((found.args, dict(found.kwargs)), self._placed)
        device = self.reference.device
        with device:
            given = canonical(op.form("function"), at(args, device), at(kwargs, device))
        return tuple(_hosted(a) for a in given)

    def _placed(self, array: Array) -> Tensor:
        return to_device(array, self.reference)

    def _dtypes(self, op: Operator[..., Any], found: Sample, want: tuple[Array, ...]) -> tuple[dtype, ...]:
        args, kwargs = mapped((found.args, dict(found.kwargs)), self._placed)
        result = tensors(called(op, args, kwargs, self.reference))
        if found.of is not None:
            inner = floating_of(found)
            return tuple(narrowed(device_dtype(w.dtype), inner) for w in want)
        return tuple(t.dtype for t in result)

    def _exact(self, op: Operator[..., Any], output: int, samples: list[Sample]) -> bool:
        seen = False
        for found in samples:
            if floating_of(found) is None and any(True for _ in arrays((found.args, dict(found.kwargs)))):
                continue  # of integers the answer comes in the result's own dtype: that it fits says nothing
            answer = self.answer(op, found)
            d = answer.dtypes[output]
            if d.to_real() is float64:  # the oracle's own precision, in which it cannot tell (float_power)
                return False
            if d.is_floating_point or d.is_complex:
                values = answer.want[output]
                seen |= bool(np.any(values != np.round(values)))
                if not representable(values, d):
                    return False
        return seen


def terms(op: Operator[..., Any], found: Sample, want: tuple[Array, ...]) -> int:
    """Into one element of the result go so many of the inputs: of a pointwise operator's one each, of all others maybe
    the largest input whole (the last of its running sums, say)."""
    sizes = [a.size for a in arrays((found.args, dict(found.kwargs)))]
    if getattr(op.rule, "pointwise", False):
        return max(1, sum(sizes) // max(1, max((w.size for w in want), default=1)))
    return max(1, *sizes, 1)


def with_arrays(found: Sample, function: Any) -> Sample:
    """The sample with ``function`` applied to each array."""
    return replace(found, args=mapped(found.args, function), kwargs=mapped(dict(found.kwargs), function))


def with_operands(op: Operator[..., Any], found: Sample, function: Any) -> Sample:
    """The sample with ``function`` applied to the arrays of its operands: not to indices and masks."""
    kinds = {p.name: p.kind in DIFFERENTIABLE for p in op.schema.parameters}
    names = [p.name for p in op.schema.parameters]
    args = tuple(mapped(a, function) if kinds[n] else a for n, a in zip(names, found.args))
    kwargs = {n: mapped(a, function) if kinds.get(n) else a for n, a in found.kwargs.items()}
    return replace(found, args=args, kwargs=kwargs)


def _as_float(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype.kind in "biu" else array


def floating_of(found: Sample) -> dtype | None:
    """The dtype of the sample's first floating or complex array."""
    for array in arrays((found.args, dict(found.kwargs))):
        if array.dtype.kind not in "biu":
            return device_dtype(array.dtype)
    return None


def narrowed(d: dtype, inner: dtype | None) -> dtype:
    """A wide dtype in the precision of another."""
    if inner is None or not (d.is_floating_point or d.is_complex):
        return d
    real = inner.to_real() if inner.is_complex else inner
    return real.to_complex() if d.is_complex else real


def perturbed(op: Operator[..., Any], found: Sample, step: float, seed: int) -> Sample:
    """Every floating value moved by one step, up or down at random; equal arrays move alike.

    Whole numbers by which nobody derives (the degree of a polynomial) stay: the answer jumps there.
    """
    random = np.random.Generator(np.random.Philox(seed))
    made: dict[int, Array] = {}
    fixed = _whole_constants(op, found)

    def move(array: Array) -> Array:
        if array.dtype.kind in "biu" or any(array is one for one in fixed):
            return array
        if id(array) not in made:
            signs = random.choice((-1.0, 1.0), array.shape)
            with np.errstate(all="ignore"):
                moved: Array = np.asarray(array * (1 + step * signs))
            # The largest number is not moved to infinity: that would say that anything may come out there.
            made[id(array)] = np.where(np.isfinite(moved), moved, array)
        return made[id(array)]

    return with_arrays(found, move)


def _whole_constants(op: Operator[..., Any], found: Sample) -> list[Array]:
    given = {**dict(zip((p.name for p in op.schema.parameters), found.args)), **dict(found.kwargs)}
    constants = (array for name in found.constant for array in arrays(given.get(name)))
    return [array for array in constants if array.dtype.kind == "f" and np.array_equal(array, np.rint(array))]


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
