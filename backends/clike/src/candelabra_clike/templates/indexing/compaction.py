"""Stream compaction: the elements that a mask selects, in order.

The mask is divided into blocks, one work-item each. Every block counts its elements. The host adds up the counts,
because it needs the size of the result. Then every block computes its offset from the counts of the blocks before it,
and writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import NamedTuple

from candelabra.dtypes import dtype, int64, uint64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.language import INDEX, Value, cast, constant
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source
from candelabra_clike.templates.index_walker import each_coordinate
from candelabra_clike.templates.indexing.gather import bits
from candelabra_clike.types import CTYPES

LEAST = 256
"""The minimum number of elements of a block."""
LANES = 1024
"""The maximum number of blocks on devices whose work-items are lanes."""


class MaskCounts(NamedTuple):
    """A contiguous mask, and the number of true elements in each block of ``size`` elements."""

    mask: StridedArray
    counts: StridedArray
    blocks: int
    size: int
    total: int


def count_mask(mask: StridedArray) -> MaskCounts:
    """Count the true elements of a contiguous mask (bytes). This waits for the device."""
    engine = mask.engine
    most = 4 * engine.traits.compute_units if engine.traits.serial else LANES
    size = max(LEAST, -(-mask.size // most))
    blocks = -(-mask.size // size)
    counts = engine.empty((blocks,), uint64)
    if not blocks:
        return MaskCounts(mask, counts, 0, size, 0)
    wide = mask.offset + mask.size >= WIDE
    compiled(engine, "", uint64, 0, wide)(blocks, mask.buffer, counts.buffer, mask.offset, mask.size, size)
    return MaskCounts(
        mask, counts, blocks, size, sum(memoryview(engine.read(counts.buffer, 0, 8 * blocks)).cast("B").cast("Q"))
    )


def select_values(counted: MaskCounts, x: StridedArray) -> StridedArray:
    """Return the elements of ``x``, which is contiguous and has the shape of the mask, where the mask is true."""
    out = x.engine.empty((counted.total,), x.dtype)
    return _write_selected(counted, out, x, (), "values")


def select_indices(counted: MaskCounts, shape: Shape) -> StridedArray:
    """Return the indices of the true elements, one row each, in a mask of ``shape``."""
    out = counted.mask.engine.empty((counted.total, len(shape)), int64)
    return _write_selected(counted, out, counted.mask, shape, "indices")


def _write_selected(counted: MaskCounts, out: StridedArray, x: StridedArray, shape: Shape, output: str) -> StridedArray:
    if not out.size:
        return out
    mask, wide = counted.mask, max(array.offset + array.size for array in (counted.mask, out, x)) >= WIDE
    compiled(out.engine, output, bits(x.dtype), len(shape), wide)(
        counted.blocks, mask.buffer, x.buffer, counted.counts.buffer, out.buffer, mask.offset, x.offset, mask.size,
        counted.size, *shape,
    )  # fmt: skip
    return out


@lru_cache(None)
def compiled(engine: Engine, output: str, d: dtype, rank: int, wide: bool) -> Launch:
    """Return a compiled kernel: the one that counts, or the one that writes ``"values"`` or ``"indices"``."""
    return engine.compile(write_source(output, d, rank, wide) if output else count_source(wide))


@contextmanager
def _block(k: KernelBuilder, n: Value, size: Value) -> Iterator[tuple[Value, Value]]:
    """The block of a work-item: its first element, and the one after its last."""
    first = k.let("first", k.item * size)
    with k.when(first < n):
        yield first, k.let("last", first + least(n - first, size))


@built("masked_select")
def count_source(wide: bool) -> Source:
    """Return the kernel that counts the true elements of each block."""
    k = KernelBuilder("count_mask", wide)
    mask, counts = k.reads("mask", "u8"), k.writes("counts", "u64")
    mask_at, n, size = k.numbers("mask_at", "n", "size")
    with _block(k, n, size) as (first, last):
        count = k.variable("count", constant(INDEX, 0))
        with k.loop("i", first, last) as i:
            k.assign(count, count + mask[mask_at + i])
        counts[k.item] = cast("u64", count)
    return k.source()


@built("masked_select")
def write_source(output: str, d: dtype, rank: int, wide: bool) -> Source:
    """Return the kernel that writes the selected elements of each block."""
    memory, values = CTYPES[d].memory, output == "values"
    k = KernelBuilder(f"{output}_{memory}_{rank}d", wide)
    mask, x, counts = k.reads("mask", "u8"), k.reads("x", memory), k.reads("counts", "u64")
    out = k.writes("out", memory if values else "i64")
    mask_at, x_at, n, size = k.numbers("mask_at", "x_at", "n", "size")
    sizes = k.per_dim("n", rank)
    with _block(k, n, size) as (first, _):
        begin = k.variable("begin", constant(INDEX, 0))
        with k.loop("b", 0, k.item) as b:
            k.assign(begin, begin + cast(INDEX, counts[b]))
        end, to = k.let("end", begin + cast(INDEX, counts[k.item])), k.variable("to", begin)
        i = k.variable("i", first)
        # Every element is written, and overwritten by the next one unless the mask is true. This avoids a branch.
        with k.repeat(to < end):
            out[to if values else to * rank] = x[x_at + i] if values else cast("i64", i)
            k.assign(to, to + mask[mask_at + i])
            k.assign(i, i + 1)
        if rank > 1 and not values:
            with k.loop("row", begin, end) as row:
                left = k.variable("left", cast(INDEX, out[row * rank]))
                for dim, index in each_coordinate(k, left, sizes):
                    out[row * rank + dim] = cast("i64", index)
    return k.source()
