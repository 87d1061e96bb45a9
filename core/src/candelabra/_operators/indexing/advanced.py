"""Advanced indexing: index tensors for several dims, which broadcast together.

Negative indices count from the end. Every device checks the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._geometry import Ints
from candelabra._layout import broadcast_shapes
from candelabra._operators.creation.filled import new_full
from candelabra._operators.indexing.gather_scatter import index_outside
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import identical
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Index, Mask, Number, Tensor

Indices = Sequence["Tensor | None"]


def advanced_shape(shape: Ints, indices: Sequence[Any]) -> Ints:
    """Return the shape of ``x[indices]``.

    The dims of the indices replace the indexed dims if these are adjacent; otherwise they come first.
    """
    if len(indices) > len(shape):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)} (got {len(indices)})")
    used = [d for d, i in enumerate(indices) if i is not None]
    try:
        picked = broadcast_shapes(*[shape_of(indices[d]) for d in used])
    except RuntimeError:
        shapes = ", ".join(str(list(shape_of(indices[d]))) for d in used)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    remaining = [d for d in range(len(shape)) if d not in used]
    front = used[0] if used and used[-1] - used[0] + 1 == len(used) else 0
    before, after = remaining[:front], remaining[front:]
    return (*[shape[d] for d in before], *picked, *[shape[d] for d in after])


def _check_bounds(input: Tensor, indices: Sequence[Any], *_: Any) -> None:
    for d, index in enumerate(indices):
        size = input.shape[d]
        outside = None if index is None else index_outside(index, -size, size)
        if outside is not None:
            raise IndexError(f"index {outside} is out of bounds for dimension {d} with size {size}")


@operator(
    by(lambda input, indices: advanced_shape(shape_of(input), indices)), check=_check_bounds, method=False, public=False
)
def index(input: Tensor, indices: Sequence[Index | None]) -> Tensor:
    """``input[indices]``; see :func:`index_put` for the indices."""
    ...


def _index_gradient(g: Tensor, input_spec: Any, indices: Indices) -> Tensor:
    return index_put(new_full(g, input_spec.shape, 0), indices, g, True)


index.vjp(input=_index_gradient)


@by
def _put(input: Tensor, indices: Indices, values: Tensor, accumulate: bool) -> Ints:
    shape = shape_of(input)
    target_shape, source_shape = advanced_shape(shape, indices), shape_of(values)
    lead = len(target_shape) - len(source_shape)
    if lead < 0 or any(size not in (1, other) for size, other in zip(source_shape, target_shape[lead:], strict=True)):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(source_shape)} cannot be broadcast to indexing result of "
            f"shape {list(target_shape)}"
        )
    return shape


@operator(_put, check=_check_bounds, promote=identical, inplace=True, out=False, autocast=Autocast("widest"))
def index_put(input: Tensor, indices: Sequence[Index | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """Return ``input`` with ``values``, broadcast, written to ``input[indices]``, or added with ``accumulate``.

    For each dim, ``indices`` has an int64 tensor, a mask (for as many dims as it has), or None for the whole dim.
    Elements are written in order: the last write wins. They are added in order, too, half types in float32, with the
    error of :func:`scatter_add`.

    Raises ``IndexError`` for indices out of bounds, ``RuntimeError`` for different dtypes and for values that do not
    broadcast.
    """
    ...


def _put_input_gradient(g: Tensor, indices: Indices, accumulate: bool) -> Tensor:
    return g if accumulate else index_put(g, indices, new_full(g, (), 0))


index_put.vjp(input=_put_input_gradient, values=lambda g, indices: index(g, indices))


# -- with a mask of the valid indices ---------------------------------------------------------------------------------
def _clamped(input: Tensor, indices: Indices) -> list[Tensor | None]:
    sizes = input.shape
    return [None if i is None else i.clamp(-sizes[d], max(sizes[d] - 1, 0)) for d, i in enumerate(indices)]


def _masked_shape(input: Tensor, mask: Tensor, indices: Indices, *_: Any) -> Ints:
    return broadcast_shapes(advanced_shape(shape_of(input), indices), shape_of(mask))


@operator(by(_masked_shape), method=False, out=False)
def _unsafe_masked_index(input: Tensor, mask: Mask, indices: Sequence[Index | None], fill: Number) -> Tensor:
    """``input[indices]`` where ``mask`` is true, ``fill`` elsewhere, where indices may be out of bounds."""
    return index(input, _clamped(input, indices)).masked_fill(mask.logical_not(), fill)


@operator(by(lambda input, *_: shape_of(input)), promote=identical, method=False, out=False)
def _unsafe_masked_index_put_accumulate(
    input: Tensor, mask: Mask, indices: Sequence[Index | None], values: Tensor
) -> Tensor:
    """Return ``input`` with ``values`` added at ``indices`` where ``mask`` is true; elsewhere they may be out of
    bounds.
    """
    return index_put(input, _clamped(input, indices), values.masked_fill(mask.logical_not(), 0), True)
