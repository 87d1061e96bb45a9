"""The values of results for ordinary and special inputs, and their dtype, shape and device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
from candelabra.dtypes import dtype

from candelabra_conformance.calling import called, determined, split, tensors_in
from candelabra_conformance.comparing import described, error_in_ulp, wrong
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.inner_products import ADDITIONS, INNER_PRODUCTS, sequential_error
from candelabra_conformance.layouts import CONTIGUOUS, MEMORY, placed
from candelabra_conformance.model import FLUSHED
from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.oracle import DIRECTIONS, Answer, as_given, dtypes_of
from candelabra_conformance.perturbation import with_arrays, without_subnormals
from candelabra_conformance.properties.axes import everywhere, extremes, of_callable, some
from candelabra_conformance.properties.registry import operator_property
from candelabra_conformance.records import CallableRecord, Record
from candelabra_conformance.references.registry import ROUNDED_DRAWS
from candelabra_conformance.samples.gather import generators_of
from candelabra_conformance.samples.sample import KINDS, LENGTH_ONE, ZERO_DIM, ZERO_SIZE, Sample, arrays
from candelabra_conformance.samples.special_values import EITHER_ZERO
from candelabra_conformance.tolerance import CORRECTLY_ROUNDED, eps, rounded, smallest_normal, wide
from candelabra_conformance.transport import Array

SMALL: Final = (*MEMORY, *KINDS[1:-1])
"""The layouts and kinds of samples for public callables."""
SPECTRA: Final = frozenset({"linalg_eigvalsh", "linalg_svdvals", "linalg_eigvalsh_triangle", "linalg_svdvals_driver"})
"""The operators whose results are the eigenvalues of Hermitian matrices, or singular values."""


@operator_property("value", everywhere(1), of_callable(1, SMALL))
def value(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """Every output agrees with the oracle within the derived bound; other results than tensors are equal."""
    worst = None
    for sample in context.each(op, d, layout):
        got, others = split(sample, computed(context, op, sample, layout), context.reference)
        worst = max(worst or 0.0, agree(context, op, d, sample, layout, got))
        same_others(others, context.oracle.answer(op, sample).others, sample, layout)
    return worst


def computed(context: Context, op: Record, sample: Sample, layout: str) -> Any:
    """Return the device's result for a sample."""
    args = placed(sample.args, layout, context.instance)
    kwargs = placed(dict(sample.kwargs), layout, context.instance)
    return called(op, args, kwargs, context.instance)


def results(context: Context, op: Record, sample: Sample, layout: str) -> tuple[Array, ...]:
    """Return the device's values for a sample, on the host."""
    return determined(sample, computed(context, op, sample, layout), context.reference)


def same_others(got: tuple[Any, ...], want: tuple[Any, ...], sample: Sample, layout: str) -> None:
    """Check that other results than tensors are equal and of the same type."""
    if len(got) != len(want):
        raise Failure(f"{len(got)} results that are no tensors, {len(want)} are due", sample, layout)
    for value, due in zip(got, want, strict=True):
        both_nan = value != value and due != due
        if type(value) is not type(due) or not (value == due or both_nan):
            alone = due if len(want) == 1 else None
            raise Failure(f"the result is {value!r}, {due!r} is due", sample, layout, plain=alone)


def agree(
    context: Context,
    op: Record,
    d: dtype,
    sample: Sample,
    layout: str,
    got: tuple[Array, ...],
    stored: dtype | None = None,
) -> float:
    """Compare values with the answer and return the largest error in ULP. ``stored``: the dtype of the target."""
    answer = as_stored(context.oracle.answer(op, sample), stored)
    if len(got) != len(answer.want):
        raise Failure(f"{len(got)} results, {len(answer.want)} are due", sample, layout)
    worst = 0.0
    for output, (values, want) in enumerate(zip(got, answer.want, strict=True)):
        if values.shape != want.shape:
            raise Failure(f"result of shape {list(values.shape)}, {list(want.shape)} is due", sample, layout)
        due = answer.dtypes[output]
        drawn = op.random and op.name not in ROUNDED_DRAWS
        exact = drawn or context.exact(op, sample, output) or is_correctly_rounded(context, op, due)
        for directions in DIRECTIONS[:1] if exact else DIRECTIONS:
            sensitivity = sensitivity_of(
                as_stored(context.oracle.answer(op, sample, directions), stored), output, sample, op
            )
            bad = wrong(values, want, sensitivity, answer.length, due, exact)
            if not bad.any():
                break
        least: Array | float = 0.0
        if bad.any() and not exact and op.name in INNER_PRODUCTS | ADDITIONS and sample.of is None:
            least = sequential_error(op, sample, due, context.reference)
            bad = wrong(values, want, sensitivity, answer.length, due, exact, least)
        excused: Array | bool = False
        if not context.instance.capabilities.subnormals:
            excused = _flushed(values, want, due)
            bad &= ~excused
        if bad.any():
            own = context.oracle.own(op, sample)[output] if not context.oracle.itself else want
            if not _as_own(values, own, due, exact):
                words = described(values, want, bad, due, sensitivity, answer.length, least, exact)
                named = op.schema.outputs if len(op.schema.outputs) == len(answer.want) else range(len(answer.want))
                name = f"{named[output]}: " if len(answer.want) > 1 and sample.of is None else ""
                words += _flushing(context, op, sample, output, values, want, bad, due)
                raise Failure(name + words, sample, layout, expected=want, got=values, dtype=due)
        measured = np.where(excused, rounded(want, due), values) if np.any(excused) else values
        worst = max(worst, error_in_ulp(measured, want, due, scale_of(sensitivity, due)))
    return worst


def _flushed(values: Array, want: Array, due: dtype) -> Array:
    """Return True for the zeros that a device without subnormal numbers may return.

    The answer may be normal, and an intermediate result, such as half of it, not.
    """
    return np.asarray((wide(values) == 0) & (np.abs(want) < 4 * smallest_normal(due)))


def _flushing(
    context: Context, op: Record, sample: Sample, output: int, values: Array, want: Array, bad: Array, due: dtype
) -> str:
    """Return a line of a message if all wrong elements are those of a device that flushes subnormal numbers to zero."""
    left = bad & ~_flushed(values, want, due)
    if left.any():
        zeros = with_arrays(sample, lambda array: without_subnormals(array, zeros=True))
        if all(a is b for a, b in zip(arrays(zeros.args), arrays(sample.args), strict=True)):
            return ""
        try:
            flushed = context.oracle.answer(op, zeros).want[output]
        except Exception:  # an operator may refuse zeros
            return ""
        if flushed.shape == want.shape:
            left &= wrong(values, flushed, 0.0, 1, due) & ~_flushed(values, flushed, due)
    return "" if left.any() else f"; {FLUSHED}"


def scale_of(sensitivity: Array, due: dtype) -> Array | float:
    """Return the size of the terms of the answer: each term of a difference changes it by an eps."""
    if not eps(due):
        return 0.0
    with np.errstate(over="ignore"):
        return np.asarray(np.minimum(sensitivity / eps(due), np.finfo(np.float64).max))


def as_stored(answer: Answer, stored: dtype | None) -> Answer:
    """Return the answer after a write into a tensor of another dtype: integers wrap, a wider dtype adds no digits."""
    if stored is None or answer.dtypes == (stored,) or 0 < eps(stored) <= eps(answer.dtypes[0]):
        return answer
    return replace(answer, want=tuple(wide(rounded(w, stored)) for w in answer.want), dtypes=(stored,))


def sensitivity_of(answer: Answer, output: int, sample: Sample, op: Record) -> Array:
    """Return the change of an output, for the bound; for matrices and values independent of a choice, in the norm.

    Algorithms of linear algebra have errors of that size (Higham 2002, ch. 7): the error of a zero of an orthogonal
    product is that of its largest neighbour. Eigenvalues of Hermitian matrices and singular values move by at most the
    norm of a change of their matrix (Weyl's inequality; Horn and Johnson, Matrix Analysis, 2013, ch. 4.3), and an
    algorithm changes the matrix by some eps times its norm, which is the largest of the values.
    """
    sensitivity, want, d = answer.sensitivity[output], answer.want[output], answer.dtypes[output]
    if sample.exact:
        return np.zeros(want.shape)
    if op.name in SPECTRA and want.size:
        return np.asarray(sensitivity + eps(d) * np.max(np.abs(want), -1, keepdims=True))
    if not (sample.core or sample.of) or not want.size or not (d.is_floating_point or d.is_complex):
        return sensitivity
    size = np.max(np.abs(want), initial=0.0, where=np.isfinite(np.abs(want)))
    return np.asarray(
        np.maximum(sensitivity, np.max(sensitivity, initial=0.0, where=np.isfinite(sensitivity))) + eps(d) * size
    )


def is_correctly_rounded(context: Context, op: Record, due: dtype) -> bool:
    """Return whether exactly one value is right in that dtype, although most results are rounded.

    The reference's own float64 is compared with 80 bits, whose rounding to 53 bits may be the other neighbour.
    """
    own_double = context.oracle.itself and due.name == "float64"
    return due.is_floating_point and op.name in CORRECTLY_ROUNDED and not own_double


def _as_own(values: Array, own: Array, due: dtype, exact: bool) -> bool:
    """Return whether the values agree with the reference in the same dtype, since the operator depends on the dtype."""
    return values.shape == own.shape and not wrong(values, wide(own), 0.0, 1, due, exact).any()


def _has_special(op: Record) -> bool:
    return bool(generators_of(op.name, "special"))


@operator_property("special", extremes(2), of_callable(3, (CONTIGUOUS,), when=_has_special))
def special(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """Results for NaN, infinities, signed zeros, subnormals and extremes agree with the oracle, also signs of zeros."""
    worst = None
    for sample in context.each_of(op, d, "special"):
        got = results(context, op, sample, CONTIGUOUS)
        worst = max(worst or 0.0, agree(context, op, d, sample, CONTIGUOUS, got))
        answer = context.oracle.answer(op, sample)
        for output, values in enumerate(() if op.name in EITHER_ZERO else got):
            _same_zeros(values, answer.want[output], answer.dtypes[output], sample)
    return worst


def _same_zeros(values: Array, want: Array, d: dtype, sample: Sample) -> None:
    if not d.is_floating_point or values.shape != want.shape:
        return
    nearest = wide(rounded(want, d))
    zeros = (wide(values) == 0) & (nearest == 0) & (want == 0)
    other = zeros & (np.signbit(wide(values)) != np.signbit(nearest))
    if other.any():
        index = tuple(int(i) for i in np.argwhere(other)[0])
        raise Failure(f"the zero at {list(index)} has the other sign: got {float(values[index])!r}", sample)


@operator_property(
    "result",
    some(1, dtypes=0, layouts=(CONTIGUOUS, ZERO_DIM, ZERO_SIZE, LENGTH_ONE)),
    of_callable(1, (CONTIGUOUS, ZERO_DIM, ZERO_SIZE)),
)
def result(context: Context, op: Record, d: dtype, layout: str) -> float | None:
    """Every output has the dtype, shape and device of the record, also without dims and without elements."""
    for sample in context.each(op, d, layout):
        whole = computed(context, op, sample, layout)
        answer = context.oracle.answer(op, sample)
        if isinstance(op, CallableRecord):
            as_declared(context, op, whole, answer, sample, layout)
        elif type(whole).__name__ != (op.schema.result.__name__ if op.schema.result else "Tensor"):
            raise Failure(f"the result is a {type(whole).__name__}", sample, layout)
        for output, tensor in enumerate(tensors_in(whole)):
            if tensor.device != context.device and not _is_elsewhere(op, sample):
                raise Failure(f"the result is on {tensor.device}, not on {context.device}", sample, layout)
            held = tensor._instance.backend.dtype_of(tensor._payload)
            if held is not tensor.dtype:
                raise Failure(f"the payload's dtype is {held.name}, the tensor's {tensor.dtype.name}", sample, layout)
            if not isinstance(tensor._payload.shape, tuple):
                raise Failure(f"the payload's shape is {tensor._payload.shape!r}, not a tuple", sample, layout)
            if sample.of is None:
                _expect(tensor, answer.dtypes[output], answer.want[output].shape, sample, layout)
    return None


def _is_elsewhere(op: Record, sample: Sample) -> bool:
    """Return whether a result may be on another device, since no argument is on the device under test.

    For example, a tensor over the memory of a NumPy array is on the host's device.
    """
    given = tuple(arrays([sample.args, dict(sample.kwargs)]))
    return isinstance(op, CallableRecord) and op.schema.named("device") is None and not given


KINDS_OF_NUMBERS: Final = {
    "b": "bool",
    "i": "integer",
    "u": "integer",
    "f": "floating",
    "V": "floating",
    "c": "complex",
}


def as_declared(context: Context, op: CallableRecord, whole: Any, answer: Answer, sample: Sample, layout: str) -> None:
    """Check that a public callable returns the type of its signature, with a dtype of the category of its reference.

    The dtype must be the same if the result depends on it, as in ``Tensor.half``.
    """
    returns = op.entry.returns
    plain = {"Tensor": "Tensor", "bool": "bool", "int": "int", "float": "float", "complex": "complex", "str": "str"}
    due = plain.get(returns) or next((kind for kind in ("tuple", "list", "dict") if returns.startswith(kind)), None)
    if due is not None and type(whole).__name__ != due and "|" not in returns:
        raise Failure(f"the result is a {type(whole).__name__}, the signature says {returns}", sample, layout)
    if sample.of is not None or not context.oracle.itself:
        return
    for d, kind in zip(dtypes_of(whole), answer.kinds, strict=True):
        held = host_dtype(d)
        if kind != held if as_given(op) else KINDS_OF_NUMBERS[kind.kind] != KINDS_OF_NUMBERS[held.kind]:
            raise Failure(f"the result is {d.name}, the reference gives {kind.name}", sample, layout)


def _expect(tensor: Any, d: dtype, shape: tuple[int, ...], sample: Sample, layout: str) -> None:
    if tensor.dtype is not d:
        raise Failure(f"the result is {tensor.dtype.name}, {d.name} is due", sample, layout)
    if tuple(tensor._payload.shape) != tuple(shape):
        raise Failure(f"the result has shape {list(tensor._payload.shape)}, {list(shape)} is due", sample, layout)
