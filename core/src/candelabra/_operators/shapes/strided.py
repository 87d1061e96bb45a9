"""Views of memory by sizes and steps: ``as_strided``, its derivative and its scatter."""

from __future__ import annotations

from math import prod

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._geometry import Geometry, Ints, extent
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.indexing.advanced import index_put
from candelabra._operators.indexing.index_operators import index_add, index_select
from candelabra._operators.shapes.reshaping import reshape
from candelabra._records.record import operator
from candelabra._records.rules import by
from candelabra.dtypes import int64

if TYPE_CHECKING:
    from candelabra.typing import Origin, Shape, StorageOffset, Tensor

Layout = tuple[Ints, int, int, int]
"""A canonical ``Origin``: strides and offset of a tensor, begin and end of its memory."""


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
    by(lambda input, *arguments: _strided_geometry((), (), 0, *arguments)[0]), view=_strided_geometry, inplace=True
)
def as_strided(
    input: Tensor, size: Shape, stride: Shape, storage_offset: StorageOffset = None, origin: Origin = None
) -> Tensor:
    """A view of the memory under ``input``: any sizes and steps, from ``storage_offset`` (default: that of ``input``).

    ``origin``, the layout of ``input``, is computed whatever is given; the derivative needs it.

    Raises ``RuntimeError`` for negative steps and for elements outside the memory of ``input`` or its base.
    """
    ...


# -- the memory as a tensor of one dim --------------------------------------------------------------------------------
def _positions(like: Tensor, shape: Ints, strides: Ints, offset: int) -> Tensor:
    """Where in memory the elements lie, as a 1-d int64 tensor in C order."""
    found = new_full(like, (1,) * len(shape), offset, dtype=int64)
    for d, (n, k) in enumerate(zip(shape, strides, strict=True)):
        steps = new_arange(like, 0, k, n, dtype=int64)
        found = found + reshape(steps, [n if i == d else 1 for i in range(len(shape))])
    return reshape(found, (prod(shape),))


def _memory(input: Tensor, size: Ints, stride: Ints, storage_offset: int, origin: Layout) -> tuple[Tensor, Tensor]:
    """Memory with the elements of ``input`` at the positions of its ``origin``, zeros elsewhere; and these positions.

    It reaches as far as ``input`` and as the view of the given size and stride do.
    """
    strides, offset, *_ = origin
    shape = tuple(input.shape)
    reach = max(offset + extent(shape, strides), storage_offset + extent(size, stride))
    positions = _positions(input, shape, strides, offset)
    return index_put(new_full(input, (reach,), 0), (positions,), reshape(input, (prod(shape),))), positions


def strided_gather(input: Tensor, size: Ints, stride: Ints, storage_offset: int, origin: Layout) -> Tensor:
    """What :func:`as_strided` shows of a tensor that lies in memory as ``origin`` says, wherever ``input`` lies."""
    memory, _ = _memory(input, size, stride, storage_offset, origin)
    return reshape(index_select(memory, 0, _positions(input, size, stride, storage_offset)), size)


def strided_scatter(
    input: Tensor, src: Tensor, size: Ints, stride: Ints, storage_offset: int, origin: Layout
) -> Tensor:
    """``input`` with what :func:`as_strided` shows of its memory replaced by ``src``."""
    memory, positions = _memory(input, size, stride, storage_offset, origin)
    places = _positions(input, size, stride, storage_offset)
    memory = index_put(memory, (places,), reshape(src, (prod(size),)))
    return reshape(index_select(memory, 0, positions), tuple(input.shape))


def _strided_adjoint(
    g: Tensor, input_spec: Any, size: Ints, stride: Ints, storage_offset: int, origin: Layout
) -> Tensor:
    # The memory's gradient, then the input's share of it. Elements that the input shows several times share evenly.
    strides, offset, *_ = origin
    shape = tuple(input_spec.shape)
    reach = max(offset + extent(shape, strides), storage_offset + extent(size, stride))
    memory = new_full(g, (reach,), 0)
    memory = index_add(memory, 0, _positions(g, size, stride, storage_offset), reshape(g, (prod(size),)))
    positions = _positions(g, shape, strides, offset)
    out = index_select(memory, 0, positions)
    if any(k == 0 and n > 1 for n, k in zip(shape, strides, strict=True)):
        times = index_add(new_full(g, (reach,), 0), 0, positions, new_full(g, (prod(shape),), 1))
        out = out / index_select(times, 0, positions)
    return reshape(out, shape)


as_strided.vjp(input=_strided_adjoint).scattered(strided_scatter).gathered(strided_gather)
