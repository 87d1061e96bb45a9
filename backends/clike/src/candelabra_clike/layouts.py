"""Shapes and strides of several arrays that are walked together: broadcast, and with as few dims as will do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from candelabra_clike.array import Shape, StridedArray

WIDE = 2**31
"""From here on an index of 32 bits is not enough."""


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The common shape. Raises ``RuntimeError`` where there is none; the core finds the words."""
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    return _broadcast(tuple(shapes))


@lru_cache(4096)
def _broadcast(shapes: tuple[Shape, ...]) -> Shape:
    rank = max(map(len, shapes))
    result = [1] * rank
    for shape in shapes:
        for place, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                if result[place] not in (1, size):
                    raise RuntimeError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
                result[place] = size
    return tuple(result)


@lru_cache(4096)
def collapsed(shape: Shape, strides: tuple[Shape, ...]) -> tuple[Shape, tuple[Shape, ...]]:
    """The same walk with adjacent dims merged where all arrays allow it, and without dims of size 1.

    ``strides`` has one row an array, of the rank of ``shape``. At least one dim is left. Order is kept: it is that of
    C, so a caller that may walk in any order sorts the dims first.
    """
    sizes: list[int] = []
    rows: list[list[int]] = [[] for _ in strides]
    for place, size in enumerate(shape):
        if size == 1:
            continue
        steps = [row[place] for row in strides]
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


@lru_cache(4096)
def memory_order(shape: Shape, strides: tuple[Shape, ...]) -> Shape:
    """The dims from the outermost to the innermost in memory, as far as the arrays agree; else in C order.

    An array decides about two dims where its strides differ and neither is 0; earlier arrays decide before later ones.
    """

    def outside(first: int, second: int) -> bool:
        for row in strides:
            a, b = abs(row[first]), abs(row[second])
            if a and b and a != b and shape[first] != 1 != shape[second]:
                return a > b
        return first < second

    order: list[int] = []
    for dim in range(len(shape)):
        place = len(order)
        while place and not outside(order[place - 1], dim):
            place -= 1
        order.insert(place, dim)
    return tuple(order)


def dense_strides(shape: Shape, order: Shape) -> Shape:
    """The strides of an array without gaps whose dims lie in memory in this order."""
    strides = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def aligned(array: StridedArray, shape: Shape) -> Shape:
    """The strides of an array when it is seen with ``shape``, to which it broadcasts: 0 along what it repeats."""
    if array.shape == shape:
        return array.strides
    missing = len(shape) - len(array.shape)
    return (0,) * missing + tuple(
        0 if size == 1 != wanted else step for size, step, wanted in zip(array.shape, array.strides, shape[missing:])
    )


def overlapping(first: StridedArray, second: StridedArray) -> bool:
    """Whether the two may share an element (by the range of memory they lie in)."""
    if first.buffer is not second.buffer:
        return False
    (a, b), (c, d) = first.span, second.span
    return a < d and c < b


def is_wide(*arrays: StridedArray) -> bool:
    """Whether an index into one of them may need more than 32 bits."""
    return any(array.span[1] >= WIDE for array in arrays)
