"""Shapes and strides of arrays in one loop nest: broadcasting, collapsing of dims, memory order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from candelabra_clike.array import Shape, StridedArray, extent

WIDE = 2**31
"""From this offset on an index needs 64 bits."""


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """Return the common shape. Raises ``RuntimeError`` if there is none; the core reports which argument is wrong."""
    first = shapes[0]
    for shape in shapes:
        if shape != first:
            return _broadcast(tuple(shapes))
    return first


@lru_cache(4096)
def _broadcast(shapes: tuple[Shape, ...]) -> Shape:
    rank = max(map(len, shapes))
    result = [1] * rank
    for shape in shapes:
        for dim, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                if result[dim] not in (1, size):
                    raise RuntimeError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
                result[dim] = size
    return tuple(result)


@lru_cache(4096)
def collapsed(shape: Shape, strides: tuple[Shape, ...]) -> tuple[Shape, tuple[Shape, ...]]:
    """Merge adjacent dims where the strides of all arrays allow it, and drop dims of size 1.

    ``strides`` has one row per array, of the rank of ``shape``. At least one dim remains. The C order of the elements
    is kept, so a caller for whom the order does not matter sorts the dims first.
    """
    sizes: list[int] = []
    rows: list[list[int]] = [[] for _ in strides]
    for dim, size in enumerate(shape):
        if size == 1:
            continue
        steps = [row[dim] for row in strides]
        if sizes and all(row[-1] == step * size for row, step in zip(rows, steps)):
            sizes[-1] *= size
            for row, step in zip(rows, steps):
                row[-1] = step
        else:
            sizes.append(size)
            for row, step in zip(rows, steps):
                row.append(step)
    if not sizes:
        return (1,), tuple((0,) for _ in strides)
    return tuple(sizes), tuple(map(tuple, rows))


def collapsed_dims(shape: Shape, strides: Sequence[Shape], dims: Sequence[int]) -> tuple[Shape, tuple[Shape, ...]]:
    """Return the sizes and strides of some dims in an order, merged as by :func:`collapsed`."""
    return collapsed(tuple([shape[d] for d in dims]), tuple([tuple([row[d] for d in dims]) for row in strides]))


def check_dims(shape: Shape, dims: Shape | None) -> None:
    """Raise ``IndexError`` unless each of ``dims`` counts from the front, as kernels expect it: another one would
    address memory outside the arrays. Plans call it, so that each layout is checked once.
    """
    for dim in dims or ():
        if not 0 <= dim < len(shape):
            raise IndexError(
                f"a kernel got dim {dim} for an array of shape {shape}: expected a canonical dim, from 0 to "
                f"{len(shape) - 1}; add the number of dims to a negative one"
            )


@lru_cache(4096)
def memory_order(shape: Shape, strides: tuple[Shape, ...]) -> Shape:
    """Return the dims from outermost to innermost in memory, as far as the arrays agree; otherwise in C order.

    An array orders two dims if its strides for them differ and neither is 0. Earlier arrays take precedence.
    """

    def outside(first: int, second: int) -> bool:
        for row in strides:
            a, b = abs(row[first]), abs(row[second])
            if a and b and a != b and shape[first] != 1 != shape[second]:
                return a > b
        return first < second

    order: list[int] = []
    for dim in range(len(shape)):
        position = len(order)
        while position and not outside(order[position - 1], dim):
            position -= 1
        order.insert(position, dim)
    return tuple(order)


def dense_strides(shape: Shape, order: Shape) -> Shape:
    """Return the strides of an array without gaps whose dims have this order in memory."""
    strides = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def broadcast_strides(array: StridedArray, shape: Shape) -> Shape:
    """Return the strides of an array that is broadcast to ``shape``: 0 along repeated dims."""
    return array.strides if array.shape == shape else broadcast_layout(array.shape, array.strides, shape)


@lru_cache(4096)
def broadcast_layout(shape: Shape, strides: Shape, target: Shape) -> Shape:
    """Return the strides of a layout that is broadcast to the shape ``target``."""
    missing = len(target) - len(shape)
    return (0,) * missing + tuple(
        0 if size == 1 != wanted else step for size, step, wanted in zip(shape, strides, target[missing:])
    )


def overlapping(first: StridedArray, second: StridedArray) -> bool:
    """Whether the memory ranges of two arrays overlap."""
    if first.buffer is not second.buffer:
        return False
    (a, b), (c, d) = first.span, second.span
    return a < d and c < b


def is_wide(*arrays: StridedArray) -> bool:
    """Whether an index into one of the arrays may need more than 32 bits."""
    return max([array.offset + extent(array.shape, array.strides) for array in arrays], default=0) >= WIDE
