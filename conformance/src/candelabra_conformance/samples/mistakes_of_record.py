"""Calls that any operator must refuse according to its record: wrong kinds, numbers and dtypes of arguments, shapes,
dims.

Each is the first of the operator's own samples with one error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from candelabra.dtypes import ALL, dtype
from candelabra.library import (
    DIM,
    DIMS,
    DTYPE,
    INDEX,
    LIST,
    MASK,
    OPERAND,
    OPTIONAL,
    REQUIRED,
    TENSOR,
    Operator,
    Parameter,
    refusal,
)

from candelabra_conformance.numpy_dtypes import HOST
from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.pointwise import follows_from_record
from candelabra_conformance.samples.sample import ORDINARY, Sample, sample

Array = np.ndarray[Any, Any]

NO_TENSOR: Final[dict[str, tuple[Any, ...]]] = {
    TENSOR: ("text", [1.0], None, 1.5),
    OPERAND: ("text", [1.0], None),
    OPTIONAL: ("text", [1.0], 1.5),
    LIST: ("text", [], None, 1.5),
    INDEX: ("text", None, np.array([0.5])),
    MASK: ("text", None, np.array([0.5])),
}
"""The invalid values for each kind of tensor parameter."""
TAKES_MORE: Final = 0x04 | 0x08
"""The flags of code with ``*args`` or ``**kwargs``."""


def mistakes_of_record(op: Operator[..., Any], t: Maker) -> Iterator[Sample]:
    """Yield wrong calls in the dtype of ``t``; the note describes the error."""
    code = op.function.__code__
    if any(p.default is REQUIRED for p in op.schema.parameters):
        yield sample(note="no arguments")
    right = right_call(op, t)
    if right is None:
        return
    if not code.co_flags & TAKES_MORE:
        yield replace(right, kwargs={**right.kwargs, "no_such_keyword": 1}, note="an unknown keyword")
        more = (None,) * (1 + code.co_argcount - len(right.args))
        yield replace(right, args=(*right.args, *more), kwargs={}, note="an argument too many")
    for p in op.schema.parameters:
        for wrong in wrong_values(p, right, op):
            changed = with_value(op, right, p, wrong)
            if changed is not None:
                yield replace(changed, note=f"{p.name}={_shown(wrong)}")
    yield from _in_other_dtypes(op, right)
    yield from _that_do_not_broadcast(op, t)


def right_call(op: Operator[..., Any], t: Maker) -> Sample | None:
    """Return the first ordinary sample of the operator in this dtype, or None."""
    from candelabra_conformance.samples.gather import gathered

    return next((found for found in gathered(op, t.dtype, "inputs") if found.kind == ORDINARY), None)


def place_of(op: Operator[..., Any], right: Sample, p: Parameter) -> int | str | None:
    """Return where a sample has a parameter: a position, a keyword, or None."""
    names = [q.name for q in op.schema.parameters if not q.keyword_only]
    if p.name in right.kwargs:
        return p.name
    position = names.index(p.name) if p.name in names else None
    return position if position is not None and position < len(right.args) else None


def with_value(op: Operator[..., Any], right: Sample, p: Parameter, value: Any) -> Sample | None:
    """Return the sample with another value of a parameter, or None if it cannot be passed."""
    code = op.function.__code__
    place = place_of(op, right, p)
    if isinstance(place, int):
        return replace(right, args=(*right.args[:place], value, *right.args[place + 1 :]))
    if code.co_flags & TAKES_MORE or p.name not in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        return None
    return replace(right, kwargs={**right.kwargs, p.name: value})


def wrong_values(p: Parameter, right: Sample, op: Operator[..., Any]) -> tuple[Any, ...]:
    """Yield invalid values of a parameter."""
    if p.kind in NO_TENSOR:
        return tuple(wrong for wrong in NO_TENSOR[p.kind] if wrong is not None or not p.optional)
    if p.kind == DTYPE:
        return ("text", 1.5)
    first = next((a for a in right.args if isinstance(a, np.ndarray)), None)
    if first is None or p.kind not in (DIM, DIMS):
        return ()
    limit = max(first.ndim, 1)
    if p.kind == DIM:
        return (limit, -limit - 1, "text", 0.5)
    return (limit, -limit - 1, (0, limit), (0, 0), (0, -limit), "text")


def refuses(op: Operator[..., Any], d: dtype) -> bool:
    """Return whether an operator's record refuses a dtype, by its accepted dtypes or by a promotion that raises."""
    try:
        return refusal(op, op.promote(d)) is not None
    except (RuntimeError, TypeError):
        return True


def _in_other_dtypes(op: Operator[..., Any], right: Sample) -> Iterator[Sample]:
    """Yield the call in one dtype of each category that the record refuses."""
    seen = set()
    if op.schema.named("dtype") is not None or any(p.kind in (LIST, INDEX, MASK) for p in op.schema.tensors):
        return
    for d in ALL:
        if not refuses(op, d) or d.category in seen:
            continue
        seen.add(d.category)
        changed = right
        for p in op.schema.tensors:
            place = place_of(op, right, p)
            given = right.args[place] if isinstance(place, int) else right.kwargs.get(p.name)
            if isinstance(given, np.ndarray):
                changed = with_value(op, changed, p, np.ones(given.shape, HOST[d])) or changed
        yield replace(changed, note=f"tensors of {d.name}")


def _that_do_not_broadcast(op: Operator[..., Any], t: Maker) -> Iterator[Sample]:
    if not follows_from_record(op) or len(op.schema.tensors) < 2:
        return
    for shapes in (((2, 3), (4,)), ((3,), (2,)), ((2, 0), (2, 3))):
        yield sample(
            *[_ones(p, t.dtype, shapes[i % 2]) for i, p in enumerate(op.schema.tensors)],
            note=f"shapes {shapes[0]} and {shapes[1]}",
        )


def _ones(p: Parameter, d: dtype, shape: tuple[int, ...]) -> Array:
    return np.ones(shape, np.dtype(bool) if p.kind == MASK else HOST[d])


def _shown(value: Any) -> str:
    return f"{value.dtype} array" if isinstance(value, np.ndarray) else repr(value)
