"""Values: what comes out, on ordinary inputs and on special ones; and its dtype, shape and device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from candelabra.dtypes import dtype

from candelabra_conformance.calling import called, determined, split, tensors_in
from candelabra_conformance.comparing import described, error_in_ulp, wrong
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, MEMORY, placed
from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.oracle import DIRECTIONS, Answer, as_given, dtypes_of
from candelabra_conformance.properties.axes import everywhere, of_callable, some
from candelabra_conformance.properties.registry import operator_property
from candelabra_conformance.records import CallableRecord, Record
from candelabra_conformance.samples.gather import generators_of
from candelabra_conformance.samples.sample import KINDS, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, arrays
from candelabra_conformance.samples.special_values import EITHER_ZERO
from candelabra_conformance.tolerance import CORRECTLY_ROUNDED, eps, rounded, wide
from candelabra_conformance.transport import Array

SMALL: Final = (*MEMORY, *KINDS[1:-1])
"""The layouts and kinds of samples that public callables are tried on."""


@operator_property("value", everywhere(1), of_callable(1, SMALL))
def value(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """Every output agrees with the oracle within the derived bound; what is no tensor is equal."""
    worst = None
    for found in context.each(op, d, layout):
        got, others = split(found, made(context, op, found, layout), context.reference)
        worst = max(worst or 0.0, agree(context, op, d, found, layout, got))
        same_others(others, context.oracle.answer(op, found).others, found, layout)
    return worst


def made(context: Context, op: Record, found: Sample, layout: str) -> Any:
    """What the device makes of a sample."""
    args = placed(found.args, layout, context.instance)
    kwargs = placed(dict(found.kwargs), layout, context.instance)
    return called(op, args, kwargs, context.instance)


def results(context: Context, op: Record, found: Sample, layout: str) -> tuple[Array, ...]:
    """What the device computes of a sample, on the host."""
    return determined(found, made(context, op, found, layout), context.reference)


def same_others(got: tuple[Any, ...], want: tuple[Any, ...], found: Sample, layout: str) -> None:
    """Hold that numbers, dtypes, texts and the like are equal and of one type."""
    if len(got) != len(want):
        raise Failure(f"{len(got)} results that are no tensors, {len(want)} are due", found, layout)
    for value, due in zip(got, want, strict=True):
        both_nan = value != value and due != due
        if type(value) is not type(due) or not (value == due or both_nan):
            alone = due if len(want) == 1 else None
            raise Failure(f"the result is {value!r}, {due!r} is due", found, layout, plain=alone)


def agree(
    context: Context,
    op: Record,
    d: dtype,
    found: Sample,
    layout: str,
    got: tuple[Array, ...],
    stored: dtype | None = None,
) -> float:
    """Hold values against the answer; the largest error in ULP. ``stored``: the dtype that they were written into."""
    answer = as_stored(context.oracle.answer(op, found), stored)
    if len(got) != len(answer.want):
        raise Failure(f"{len(got)} results, {len(answer.want)} are due", found, layout)
    worst = 0.0
    for place, (values, want) in enumerate(zip(got, answer.want, strict=True)):
        if values.shape != want.shape:
            raise Failure(f"result of shape {list(values.shape)}, {list(want.shape)} is due", found, layout)
        due = answer.dtypes[place]
        exact = op.random or context.exact(op, found, place) or is_correctly_rounded(context, op, due)
        for directions in DIRECTIONS[:1] if exact else DIRECTIONS:
            spread = spread_of(as_stored(context.oracle.answer(op, found, directions), stored), place, found)
            bad = wrong(values, want, spread, answer.length, due, exact)
            if not bad.any():
                break
        if bad.any():
            own = context.oracle.own(op, found)[place] if not context.is_reference else want
            if not _as_own(values, own, due, exact):
                words = described(values, want, bad, due, spread, answer.length)
                named = op.schema.outputs if len(op.schema.outputs) == len(answer.want) else range(len(answer.want))
                name = f"{named[place]}: " if len(answer.want) > 1 and found.of is None else ""
                raise Failure(name + words, found, layout, expected=want, got=values, dtype=due)
        worst = max(worst, error_in_ulp(values, want, due, scale_of(spread, due)))
    return worst


def scale_of(spread: Array, due: dtype) -> Array | float:
    """The size of what the answer is made of: of a difference that of its terms, which move it by an eps each."""
    if not eps(due):
        return 0.0
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(spread / eps(due), np.finfo(np.float64).max))


def as_stored(answer: Answer, stored: dtype | None) -> Answer:
    """The answer as it is after a write into a tensor of another dtype: integers wrap, a wider one adds no digits."""
    if stored is None or answer.dtypes == (stored,) or 0 < eps(stored) <= eps(answer.dtypes[0]):
        return answer
    return replace(answer, want=tuple(wide(rounded(w, stored)) for w in answer.want), dtypes=(stored,))


def spread_of(answer: Answer, place: int, found: Sample) -> Array:
    """How far an output moves, where that counts; of matrices, and of what depends on no choice, in the norm.

    That is what the algorithms of linear algebra promise (Higham 2002, ch. 7): a zero of an orthogonal product is as
    far from 0 as its largest neighbour is from the truth.
    """
    spread, want, d = answer.spread[place], answer.want[place], answer.dtypes[place]
    if found.exact:
        return np.zeros(want.shape)
    if not (found.core or found.of) or not want.size or not (d.is_floating_point or d.is_complex):
        return spread
    size = np.max(np.abs(want), initial=0.0, where=np.isfinite(np.abs(want)))
    return np.asarray(np.maximum(spread, np.max(spread, initial=0.0, where=np.isfinite(spread))) + eps(d) * size)


def is_correctly_rounded(context: Context, op: Record, due: dtype) -> bool:
    """Whether there is but one right value in that dtype, though most results have to be rounded.

    The reference's own float64 is held against 80 bits, whose rounding to 53 may be the other of two neighbours.
    """
    own_double = context.is_reference and due.name == "float64"
    return due.is_floating_point and op.name in CORRECTLY_ROUNDED and not own_double


def _as_own(values: Array, own: Array, due: dtype, exact: bool) -> bool:
    """Whether the values are those of the reference in the same dtype: the operator's meaning depends on the dtype."""
    return values.shape == own.shape and not wrong(values, wide(own), 0.0, 1, due, exact).any()


def _has_special(op: Record) -> bool:
    return bool(generators_of(op.name, "special"))


@operator_property(
    "special", some(3, dtypes=0, layouts=(CONTIGUOUS,)), of_callable(3, (CONTIGUOUS,), when=_has_special)
)
def special(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """NaN, infinities, signed zeros, subnormals and extremes come out as the oracle says, zeros with their sign."""
    worst = None
    for found in context.each_of(op, d, "special"):
        got = results(context, op, found, CONTIGUOUS)
        worst = max(worst or 0.0, agree(context, op, d, found, CONTIGUOUS, got))
        answer = context.oracle.answer(op, found)
        for place, values in enumerate(() if op.name in EITHER_ZERO else got):
            _same_zeros(values, answer.want[place], answer.dtypes[place], found)
    return worst


def _same_zeros(values: Array, want: Array, d: dtype, found: Sample) -> None:
    if not d.is_floating_point or values.shape != want.shape:
        return
    nearest = wide(rounded(want, d))
    zeros = (wide(values) == 0) & (nearest == 0) & (want == 0)
    other = zeros & (np.signbit(wide(values)) != np.signbit(nearest))
    if other.any():
        index = tuple(int(i) for i in np.argwhere(other)[0])
        raise Failure(f"the zero at {list(index)} has the other sign: got {float(values[index])!r}", found)


@operator_property(
    "result",
    some(1, dtypes=0, layouts=(CONTIGUOUS, ZERO_DIM, ZERO_SIZE, LENGTH_ONE)),
    of_callable(1, (CONTIGUOUS, ZERO_DIM, ZERO_SIZE)),
)
def result(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """Dtype, shape and device of every output are the record's, also without dimensions and without elements."""
    for found in context.each(op, d, layout):
        whole = made(context, op, found, layout)
        answer = context.oracle.answer(op, found)
        if isinstance(op, CallableRecord):
            as_declared(context, op, whole, answer, found, layout)
        elif type(whole).__name__ != (op.schema.result.__name__ if op.schema.result else "Tensor"):
            raise Failure(f"the result is a {type(whole).__name__}", found, layout)
        for place, tensor in enumerate(tensors_in(whole)):
            if tensor.device != context.device and not _is_elsewhere(op, found):
                raise Failure(f"the result is on {tensor.device}, not on {context.device}", found, layout)
            held = tensor._instance.backend.dtype_of(tensor._payload)
            if held is not tensor.dtype:
                raise Failure(f"the payload's dtype is {held.name}, the tensor's {tensor.dtype.name}", found, layout)
            if not isinstance(tensor._payload.shape, tuple):
                raise Failure(f"the payload's shape is {tensor._payload.shape!r}, not a tuple", found, layout)
            if found.of is None:
                _expect(tensor, answer.dtypes[place], answer.want[place].shape, found, layout)
    return None


def _is_elsewhere(op: Record, found: Sample) -> bool:
    """Whether a result may be on another device than the one under test: nothing that the callable is given is there.

    A tensor over the memory of a NumPy array is on the host's.
    """
    given = tuple(arrays([found.args, dict(found.kwargs)]))
    return isinstance(op, CallableRecord) and op.schema.named("device") is None and not given


KINDS_OF_NUMBERS: Final = {
    "b": "bool",
    "i": "integer",
    "u": "integer",
    "f": "floating",
    "V": "floating",
    "c": "complex",
}


def as_declared(context: Context, op: CallableRecord, whole: Any, answer: Answer, found: Sample, layout: str) -> None:
    """Hold that a public callable returns what its signature says, in a dtype of the kind that its reference gives.

    In the very dtype where the result hangs on it, as in ``Tensor.half``.
    """
    returns = op.entry.returns
    plain = {"Tensor": "Tensor", "bool": "bool", "int": "int", "float": "float", "complex": "complex", "str": "str"}
    due = plain.get(returns) or next((kind for kind in ("tuple", "list", "dict") if returns.startswith(kind)), None)
    if due is not None and type(whole).__name__ != due and "|" not in returns:
        raise Failure(f"the result is a {type(whole).__name__}, the signature says {returns}", found, layout)
    if found.of is not None or not context.is_reference:
        return
    for d, kind in zip(dtypes_of(whole), answer.kinds, strict=True):
        held = host_dtype(d)
        if kind != held if as_given(op) else KINDS_OF_NUMBERS[kind.kind] != KINDS_OF_NUMBERS[held.kind]:
            raise Failure(f"the result is {d.name}, the reference gives {kind.name}", found, layout)


def _expect(tensor: Any, d: dtype, shape: tuple[int, ...], found: Sample, layout: str) -> None:
    if tensor.dtype is not d:
        raise Failure(f"the result is {tensor.dtype.name}, {d.name} is due", found, layout)
    if tuple(tensor._payload.shape) != tuple(shape):
        raise Failure(f"the result has shape {list(tensor._payload.shape)}, {list(shape)} is due", found, layout)
