"""Views of memory with given sizes and strides: ``as_strided``, its derivative and its scatter."""

from __future__ import annotations

from math import prod

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._geometry import Geometry, Ints, extent
from candelabra._layout import is_contiguous_layout
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.indexing.advanced import index_put
from candelabra._operators.indexing.index_operators import index_add, index_select
from candelabra._operators.shapes.joining import cat
from candelabra._operators.shapes.reshaping import reshape
from candelabra._records.record import operator
from candelabra._records.rules import by
from candelabra.dtypes import int64

if TYPE_CHECKING:
    from candelabra.typing import Origin, Shape, StorageOffset, Tensor

Layout = tuple[Ints, int, int, int]
"""A canonical ``Origin``: strides and offset of a tensor, start and end of its memory."""


def _strided_geometry(
    shape: Ints, strides: Ints, start: int, size: Ints, stride: Ints, storage_offset: int, origin: Layout
) -> Geometry:
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    *_, low, high = origin
    if prod(size) and (storage_offset < low or storage_offset + extent(size, stride) > high):
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {storage_offset} are out of "
            f"bounds for storage of {high} elements"
        )
    return size, stride, storage_offset


@operator(
    by(lambda input, *arguments: _strided_geometry((), (), 0, *arguments)[0]),
    view=_strided_geometry,
    inplace=True,
    uses="memory",
)
def as_strided(
    input: Tensor, size: Shape, stride: Shape, storage_offset: StorageOffset = None, origin: Origin = None
) -> Tensor:
    """Return a view of the memory of ``input`` with any sizes and strides, at ``storage_offset`` (default: that of
    ``input``).

    ``origin``, the layout of ``input``, is always computed, because the derivative needs it; a given value is ignored.
    Raises ``RuntimeError`` for negative strides and for elements outside the memory of ``input`` or its base.
    """
    ...


# -- the memory as a tensor of one dim --------------------------------------------------------------------------------
def _positions(like: Tensor, shape: Ints, strides: Ints, offset: int) -> Tensor:
    """Return the memory positions of the elements, as a 1-d int64 tensor in C order."""
    result = new_full(like, (1,) * len(shape), offset, dtype=int64)
    for d, (n, k) in enumerate(zip(shape, strides, strict=True)):
        steps = new_arange(like, 0, k, n, dtype=int64)
        result = result + reshape(steps, [n if i == d else 1 for i in range(len(shape))])
    return reshape(result, (prod(shape),))


def _memory(input: Tensor, size: Ints, stride: Ints, storage_offset: int, origin: Layout) -> tuple[Tensor, Tensor]:
    """Return memory with the elements of ``input`` at the positions of its ``origin`` and zeros elsewhere; and these
    positions.

    The memory is large enough for ``input`` and for a view of the given size and stride.
    """
    strides, offset, *_ = origin
    shape = tuple(input.shape)
    size_needed = max(offset + extent(shape, strides), storage_offset + extent(size, stride))
    positions = _positions(input, shape, strides, offset)
    return index_put(new_full(input, (size_needed,), 0), (positions,), reshape(input, (prod(shape),))), positions


def strided_gather(input: Tensor, size: Ints, stride: Ints, storage_offset: int, origin: Layout) -> Tensor:
    """Return the result of :func:`as_strided` for a tensor with the layout ``origin``, regardless of the layout of
    ``input``.

    It is a view of ``input`` if the layout ``origin`` is contiguous and the result selects no other memory.
    """
    count, (strides, offset, *_) = prod(input.shape), origin
    first = storage_offset - offset
    if is_contiguous_layout(tuple(input.shape), strides) and 0 <= first <= count - extent(size, stride):
        dense = input.contiguous()
        return as_strided.function(dense, size, stride, dense.storage_offset() + first)
    memory, _ = _memory(input, size, stride, storage_offset, origin)
    return reshape(index_select(memory, 0, _positions(input, size, stride, storage_offset)), size)


def strided_scatter(
    input: Tensor, src: Tensor, size: Ints, stride: Ints, storage_offset: int, origin: Layout
) -> Tensor:
    """Return ``input`` with the elements that :func:`as_strided` selects from its memory replaced by ``src``."""
    shape, (strides, offset, *_) = tuple(input.shape), origin
    if is_contiguous_layout(shape, strides) and is_contiguous_layout(size, stride):
        return _slice_replaced(input, src, offset, storage_offset)
    memory, positions = _memory(input, size, stride, storage_offset, origin)
    selected = _positions(input, size, stride, storage_offset)
    memory = index_put(memory, (selected,), reshape(src, (prod(size),)))
    return reshape(index_select(memory, 0, positions), shape)


def _slice_replaced(input: Tensor, src: Tensor, offset: int, src_offset: int) -> Tensor:
    """Return :func:`strided_scatter` of elements without gaps, in order, at offsets in one memory."""
    count, selected = prod(input.shape), prod(src.shape)
    first = min(max(src_offset - offset, 0), count)
    last = max(min(src_offset - offset + selected, count), first)
    flat, skipped = reshape(input, (count,)), max(offset - src_offset, 0)
    part = reshape(src, (selected,)).narrow(0, min(skipped, selected), last - first)
    return reshape(cat([flat.narrow(0, 0, first), part, flat.narrow(0, last, count - last)]), tuple(input.shape))


def _strided_adjoint(
    g: Tensor, input_spec: Any, size: Ints, stride: Ints, storage_offset: int, origin: Layout
) -> Tensor:
    # The gradient of the memory, then that of the input. Elements with the same position share it evenly.
    strides, offset, *_ = origin
    shape = tuple(input_spec.shape)
    size_needed = max(offset + extent(shape, strides), storage_offset + extent(size, stride))
    memory = new_full(g, (size_needed,), 0)
    memory = index_add(memory, 0, _positions(g, size, stride, storage_offset), reshape(g, (prod(size),)))
    positions = _positions(g, shape, strides, offset)
    out = index_select(memory, 0, positions)
    if any(k == 0 and n > 1 for n, k in zip(shape, strides, strict=True)):
        times = index_add(new_full(g, (size_needed,), 0), 0, positions, new_full(g, (prod(shape),), 1))
        out = out / index_select(times, 0, positions)
    return reshape(out, shape)


as_strided.vjp(input=_strided_adjoint).scattered(strided_scatter).gathered(strided_gather)
