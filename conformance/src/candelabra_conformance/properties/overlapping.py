"""In-position forms whose target and operand lie in the same memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from candelabra.dtypes import dtype
from candelabra.library import Operator

from candelabra_conformance.calling import called
from candelabra_conformance.context import Context, Failure
from candelabra_conformance.layouts import CONTIGUOUS, placed
from candelabra_conformance.properties.axes import some
from candelabra_conformance.properties.effects import same, storage
from candelabra_conformance.properties.forms import fits, has_inplace
from candelabra_conformance.properties.registry import operator_property
from candelabra_conformance.properties.value import agree
from candelabra_conformance.samples.sample import Sample
from candelabra_conformance.transport import Array, to_device, to_host

SAMPLES: Final = 2
"""The number of samples of an operator for each overlap."""
SIDE: Final = 5
"""The size of the square matrices of pointwise operators."""


class Overlap(NamedTuple):
    """Two views of one base, as functions of a tensor or an array: the target, and the operand."""

    name: str
    base: Callable[[Array], Array | None]
    """Returns the base for an operand's values, or None if they do not fit."""
    target: Callable[[Any], Any]
    operand: Callable[[Any], Any]
    pointwise: bool = False
    """Whether the operator has to broadcast its operands."""


def _longer(array: Array) -> Array | None:
    return np.concatenate((array, array[:1])) if array.ndim and array.shape[0] else None


def _square(array: Array) -> Array | None:
    return np.resize(array, (SIDE, SIDE)) if array.size else None


OVERLAPS: Final = (
    Overlap("the target itself", lambda a: a, lambda x: x, lambda x: x),
    Overlap("the elements before the target's", _longer, lambda x: x[1:], lambda x: x[:-1]),
    Overlap("the elements after the target's", _longer, lambda x: x[:-1], lambda x: x[1:]),
    Overlap("the transposed target", _square, lambda x: x, lambda x: x.swapaxes(0, 1), pointwise=True),
    Overlap("the target's first row", _square, lambda x: x, lambda x: x[0], pointwise=True),
    Overlap("the target's last column", _square, lambda x: x, lambda x: x[:, -1:], pointwise=True),
)


def _combines(op: Operator[..., Any]) -> bool:
    """Return whether an in-position form has a second operand."""
    return has_inplace(op) and len(op.schema.differentiable) > 1


@operator_property("inplace-overlap", some(2, when=_combines))
def inplace_overlap(context: Context, op: Operator[..., Any], d: dtype, layout: str) -> float | None:
    """An operand that overlaps the target in memory is read as if it had been copied before the write.

    The operator may also refuse the call with a RuntimeError that names the memory, if it has not written anything.
    """
    worst = None
    for overlap in OVERLAPS:
        for sample, position, base in _overlapping(context, op, d, overlap):
            if fits(op, context, sample, d):
                worst = max(worst or 0.0, _written(context, op, d, overlap, sample, position, base))
    return worst


def _overlapping(
    context: Context, op: Operator[..., Any], d: dtype, overlap: Overlap
) -> Iterator[tuple[Sample, int, Array]]:
    """Yield samples whose first argument and another one are views of a base, with that position and the base."""
    found = 0
    for given in context.each(op, d, CONTIGUOUS):
        first = given.args[0] if given.args else None
        for position, other in enumerate(given.args[1:], 1):
            if not isinstance(first, np.ndarray) or not isinstance(other, np.ndarray) or found == SAMPLES:
                continue
            arrays = [a for a in given.args if isinstance(a, np.ndarray)]
            alike = first.shape == other.shape and first.dtype == other.dtype
            whole = not overlap.pointwise or all(a.shape == first.shape for a in arrays)
            base = overlap.base(other) if alike and whole and not given.kwargs else None
            if base is None or (overlap.pointwise and not getattr(op.rule, "pointwise", False)):
                continue
            args = [np.resize(a, base.shape) if overlap.pointwise and _is_array(a) else a for a in given.args]
            args[0], args[position] = overlap.target(base), overlap.operand(base)
            found += 1
            yield replace(given, args=tuple(args)), position, base


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _written(
    context: Context, op: Operator[..., Any], d: dtype, overlap: Overlap, sample: Sample, position: int, base: Array
) -> float:
    """Run the in-position form on views of one tensor, and return the largest error in ULP."""
    memory = to_device(np.ascontiguousarray(base), context.instance)
    args = list(placed(sample.args, CONTIGUOUS, context.instance))
    args[0] = overlap.target(memory)
    args[position] = args[0] if overlap.operand(base) is base else overlap.operand(memory)
    name = op.schema.parameters[position].name
    try:
        called(op, args, {}, context.instance, op.form("inplace"))
    except RuntimeError as error:
        if "memory" in str(error) and same(storage(memory), base):
            return 0.0
        raise
    got = to_host(args[0])
    try:
        worst = agree(context, op, d, sample, CONTIGUOUS, (got,), d)
    except Failure as failure:
        raise Failure(
            f"in place, where {name!r} is {overlap.name}: {failure}", sample, CONTIGUOUS, **failure.details
        ) from None
    due = np.array(base)
    overlap.target(due)[...] = got
    if not same(to_host(memory), due):
        raise Failure(f"in place, where {name!r} is {overlap.name}: other memory was written to", sample, CONTIGUOUS)
    return worst
