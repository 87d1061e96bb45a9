"""Copies into another layout: with a frame of zeros, or with other strides."""

from __future__ import annotations

from math import prod

from candelabra.backend import contiguous_strides
from candelabra.dtypes import dtype, uint8, uint16, uint32, uint64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import compiled
from candelabra_clike.language import INDEX, Value, Variable, and_then, cast, constant, select
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source
from candelabra_clike.templates.index_walker import advance_variables, coordinate_variables
from candelabra_clike.types import CTYPES

SLACK = 32
"""Elements behind a padded array that may be read: vector loads may exceed it by this number."""
CHUNK = 4096
"""Elements of a work-item on serial devices."""
UNSIGNED = {1: uint8, 2: uint16, 4: uint32, 8: uint64}
"""The unsigned dtype of each item size."""


def as_bits(array: StridedArray) -> StridedArray:
    """View an array as unsigned integers of its item size."""
    return array.restrided(array.shape, array.strides, array.offset, UNSIGNED[array.dtype.itemsize])


def _copy(
    out: StridedArray, x: StridedArray, sizes: Shape, inside: Shape, before: Shape, steps: Shape, first: int
) -> None:
    """Compute ``out[i0, i1, …] = x[i0 - b0, i1 - b1, …]`` within the sizes ``inside`` of ``x``, and zero outside of
    them. ``out`` is contiguous and of ``sizes``. ``first`` is the offset of the element of ``x`` at 0, 0 …
    """
    serial = out.engine.traits.serial
    wide = serial or is_wide(out, x)
    rows, per_item = prod(sizes[:-1]), max(1, CHUNK // sizes[-1])
    modulus = 1 << (64 if wide else 32)  # a negative stride as an unsigned index
    compiled(out.engine, source, serial, out.dtype, len(sizes), wide)(
        -(-rows // per_item) if serial else rows * sizes[-1], out.buffer, x.buffer, out.offset, first, rows, per_item,
        *sizes, *inside, *before, *[step % modulus for step in steps],
    )  # fmt: skip


@built("padded")
def source(serial: bool, d: dtype, rank: int, wide: bool) -> Source:
    """Return the kernel, in which a work-item copies some rows, or one element."""
    memory, last = CTYPES[d].memory, rank - 1
    k = KernelBuilder(f"padded_copy_{memory}_{rank}", wide)
    out, x = k.writes("out", memory), k.reads("x", memory)
    out_at, x_at, rows, per_item = k.numbers("out_at", "x_at", "rows", "rows_per_item")
    n, m, b, s = (k.per_dim(name, rank) for name in "nmbs")

    def located(at: list[Variable]) -> tuple[Value, Value]:
        """Return whether the row at these coordinates is one of ``x``, and the offset of its first element."""
        places = [i - first for i, first in zip(at, b)]
        offset = sum([place * step for place, step in zip(places, s)], start=x_at)
        return and_then(constant("bool", 1), *[place < size for place, size in zip(places, m)]), offset

    if not serial:
        row, j = k.let("row", k.item // n[last]), k.let("j", k.item % n[last] - b[last])
        with k.when(row < rows):
            within, offset = located(coordinate_variables(k, row, n[:last]))
            out[out_at + k.item] = select(and_then(within, j < m[last]), x[offset + j * s[last]], 0)
        return k.source()
    first = k.let("first", k.item * per_item)
    at = coordinate_variables(k, first, n[:last])
    with k.loop("row", first, k.let("end", first + least(rows - first, per_item))) as row:
        to_row, size = k.pointer("to_row", out, out_at + row * n[last]), k.let("size", cast("i32", n[last]))
        begin, stop = k.variable("begin", size), k.variable("stop", size)
        within, offset = located(at)
        with k.when(within):
            k.assign(begin, cast("i32", b[last]))
            k.assign(stop, least(k.let("beyond", cast("i32", b[last] + m[last])), size))
            to, of = k.pointer("to", to_row, begin), k.pointer("of", x, offset)
            count = k.let("count", stop - begin)
            with k.when(and_then(s[last] == 1, count >= 8)):
                for start, end in ((0, count - 8), (count - 8, count)):  # the last vector overlaps the one before
                    with k.vectors("j", start, end, 8) as j:
                        to[j] = of[j]
            with k.otherwise(), k.loop("j", 0, count) as j:
                to[j] = of[cast(INDEX, j) * s[last]]
        k.fill(to_row, begin)
        k.fill(k.pointer("after", to_row, stop), size - stop)
        advance_variables(k, at, n[:last])
    return k.source()


def padded(x: StridedArray, before: Shape, after: Shape) -> StridedArray:
    """Return a contiguous copy of ``x`` with zeros around its last dims. :data:`SLACK` elements behind it may be
    read.
    """
    out = layout_padded(x, before, after)
    out.buffer = x.engine.allocate((out.size + SLACK) * x.dtype.itemsize)
    if out.size:
        every = (0,) * (len(x.shape) - len(before)) + before
        _copy(as_bits(out), as_bits(x), out.shape, x.shape, every, x.strides, x.offset)
    return out


def layout_padded(x: StridedArray, before: Shape, after: Shape) -> StridedArray:
    """Return the array that :func:`padded` returns, without memory."""
    lead = len(x.shape) - len(before)
    sizes = x.shape[:lead] + tuple([b + n + a for b, n, a in zip(before, x.shape[lead:], after, strict=True)])
    return StridedArray(x.engine, None, sizes, contiguous_strides(sizes), 0, x.dtype, prod(sizes), True)


def strided_copy(x: StridedArray, sizes: Shape, steps: Shape, first: int) -> StridedArray:
    """Return a contiguous copy of the elements from ``first`` on with these strides, which may be negative."""
    out = x.engine.empty(sizes, x.dtype)
    if out.size:
        _copy(as_bits(out), as_bits(x), sizes, sizes, (0,) * len(sizes), steps, first)
    return out
