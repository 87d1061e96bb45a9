"""Copies into another layout: with a frame of zeros, or with other strides."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

from candelabra.backend import contiguous_strides
from candelabra.dtypes import dtype, uint8, uint16, uint32, uint64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Launch
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.index_walker import advance, declare_coordinates
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


class PaddedCopy:
    """``out[i0, i1, …] = x[i0 - b0, i1 - b1, …]`` within the sizes of ``x``, zero outside; ``out`` is contiguous.

    The strides of ``x`` may be negative.
    """

    def __init__(self, d: dtype, rank: int) -> None:
        self.memory = CTYPES[d].memory
        self.rank = rank
        self._launches: dict[Any, Launch] = {}

    def __call__(
        self, out: StridedArray, x: StridedArray, sizes: Shape, inside: Shape, before: Shape, steps: Shape, first: int
    ) -> None:
        """Copy. ``sizes`` are those of the result, ``inside`` those of ``x``; ``first`` is the offset of its element at
        0, 0 …
        """
        engine = out.engine
        serial = engine.traits.serial
        wide = serial or is_wide(out, x)
        launch = self._launches.get((engine, wide))
        if launch is None:
            launch = self._launches[engine, wide] = engine.compile(self.source(serial, wide))
        rows = prod(sizes[:-1])
        rows_per_item = max(1, CHUNK // sizes[-1])
        count = -(-rows // rows_per_item) if serial else rows * sizes[-1]
        modulus = 1 << (64 if wide else 32)  # a negative stride as an unsigned index
        launch(
            count, out.buffer, x.buffer, out.offset, first, rows, rows_per_item, *sizes, *inside, *before,
            *[step % modulus for step in steps],
        )  # fmt: skip

    def source(self, serial: bool, wide: bool) -> Source:
        """Return the kernel: a work-item copies some rows, or one element."""
        rank, last = self.rank, self.rank - 1
        find = declare_coordinates("i", "rest", last, "n")
        within = " && ".join(["1", *[f"i{d} - b{d} < m{d}" for d in range(last)]])
        offset = " + ".join(["x_at", *[f"(i{d} - b{d}) * s{d}" for d in range(last)]])
        if serial:
            step = advance("i", last, "n")
            body = f"""const INDEX first = GLOBAL_ID * rows_per_item, after = rows - first;
const INDEX end = first + (after < rows_per_item ? after : rows_per_item);
INDEX rest = first;
{find}
for (INDEX row = first; row < end; ++row) {{
GLOBAL {self.memory}* o = out + (out_at + row * n{last});
int begin = (int)n{last}, stop = (int)n{last};
if ({within}) {{
begin = (int)b{last};
const int beyond = (int)(b{last} + m{last});
stop = beyond < stop ? beyond : stop;
GLOBAL const {self.memory}* p = x + ({offset});
const int count = stop - begin;
GLOBAL {self.memory}* const q = o + begin;
if (s{last} == 1 && count >= 8) {{
for (int j = 0; j < count - 8; j += 8) STORE_X8({self.memory}, q + j, LOAD_X8({self.memory}, p + j));
STORE_X8({self.memory}, q + count - 8, LOAD_X8({self.memory}, p + count - 8));
}} else for (int j = 0; j < count; ++j) q[j] = p[j * s{last}];
}}
for (int j = 0; j < begin; ++j) o[j] = 0;
for (int j = stop; j < (int)n{last}; ++j) o[j] = 0;
{step}
}}"""
        else:
            body = f"""const INDEX element = GLOBAL_ID, row = element / n{last}, i{last} = element % n{last} - b{last};
if (row < rows) {{
INDEX rest = row;
{find}
out[out_at + element] = {within} && i{last} < m{last} ? x[{offset} + i{last} * s{last}] : 0;
}}"""
        head = (
            writes("out", self.memory),
            reads("x", self.memory),
            *[number(n) for n in ("out_at", "x_at", "rows", "rows_per_item")],
            *[number(f"{n}{d}") for n in "nmbs" for d in range(rank)],
        )
        return Source(f"padded_copy_{self.memory}_{rank}", head, body, wide=wide)


@lru_cache(64)
def _padded_copy(d: dtype, rank: int) -> PaddedCopy:
    return PaddedCopy(d, rank)


def padded(x: StridedArray, before: Shape, after: Shape) -> StridedArray:
    """Return a contiguous copy of ``x`` with zeros around its last dims. :data:`SLACK` elements behind it may be
    read.
    """
    out = layout_padded(x, before, after)
    out.buffer = x.engine.allocate((out.size + SLACK) * x.dtype.itemsize)
    if out.size:
        bits, sizes = as_bits(x), out.shape
        arrange = _padded_copy(bits.dtype, len(sizes))
        arrange(as_bits(out), bits, sizes, x.shape, (0,) * (len(sizes) - len(before)) + before, x.strides, x.offset)
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
        bits = as_bits(x)
        _padded_copy(bits.dtype, len(sizes))(as_bits(out), bits, sizes, sizes, (0,) * len(sizes), steps, first)
    return out
