"""Operators that return the same elements in another shape: a view if the strides allow it, else a copy.

Whether the result is a view depends on the strides of the input, which a record cannot express. So these are public
callables, except for ``unflatten``, which always returns a view.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from candelabra._annotations import TYPE_CHECKING
from candelabra._codegen.arguments import as_inferred_shape, as_sizes
from candelabra._keys import VIEW, active, state
from candelabra._layout import infer_shape, view_strides, wrap_dim
from candelabra._operators.conversion.copies import clone
from candelabra._operators.shapes.views import view_shape
from candelabra._records.callables import public
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Dim, Shape, Tensor

_view = view_shape.table


@public(guarded=False)
def reshape(input: Tensor, *sizes: int | Sequence[int], shape: int | Sequence[int] | None = None) -> Tensor:
    """Return the same elements in another shape: a view if possible, else a copy. One size may be -1.

    Raises ``RuntimeError`` if the number of elements differs.
    """
    target = as_sizes(sizes if shape is None else (shape,))
    if target and min(target) < 0:
        target = as_inferred_shape(target, input)
    if not input._keys & VIEW:  # usually in C order
        try:
            out: Tensor = _view[input._keys | state.bits if active else input._keys](input, target)
            return out
        except RuntimeError:
            infer_shape(target, input.numel())  # raises the error if the number of elements is wrong
    if view_strides(input._payload.shape, input._layout()[0], target) is None:
        input = clone.canonical(input)
    out = _view[input._keys | state.bits if active else input._keys](input, target)
    return out


@public(is_function=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input.reshape(other.shape)``."""
    return reshape(input, tuple(other.shape))


@public(guarded=False)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Merge the dims from ``start_dim`` to ``end_dim`` into one; a view if possible."""
    shape = tuple(input._payload.shape)
    start, end = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if shape and start == end:
        return input
    return reshape(input, (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :]))


@public
def ravel(input: Tensor) -> Tensor:
    """Return all elements in one dim; a view if possible."""
    return reshape(input, (input.numel(),))


@by
def _unflattened(input: Tensor, dim: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
    shape = shape_of(input)
    size = shape[dim] if shape else 1
    try:
        inner = infer_shape(sizes, size)
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({size}) in the "
            "input tensor"
        ) from None
    return (*shape[:dim], *inner, *shape[dim + 1 :])


@operator(_unflattened, view=True)
def unflatten(input: Tensor, dim: Dim, sizes: Shape) -> Tensor:
    """Split one dim into several, as a view; one of the sizes may be -1."""
    shape: tuple[int, ...] = unflatten.rule(unflatten, (input, dim, sizes))
    return view_shape.canonical(input, shape)
