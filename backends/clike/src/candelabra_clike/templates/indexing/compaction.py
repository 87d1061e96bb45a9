"""Stream compaction: the elements that a mask selects, in order.

The mask is divided into blocks, one work-item each. Every block counts its elements. The host adds up the counts,
because it needs the size of the result. Then every block computes its offset from the counts of the blocks before it,
and writes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from candelabra.dtypes import dtype, int64, uint64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.index_walker import coordinates
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


BLOCK = (
    "const INDEX first = GLOBAL_ID * size;\nif (first < n) {\n"
    "const INDEX rest = n - first, last = first + (rest < size ? rest : size);\n"
)


def count_source(wide: bool) -> Source:
    """Return the kernel that counts the true elements of each block."""
    body = (
        f"{BLOCK}INDEX count = 0;\nfor (INDEX i = first; i < last; ++i) count += mask[mask_at + i];\n"
        "counts[GLOBAL_ID] = (u64)count;\n}"
    )
    head = (reads("mask", "u8"), writes("counts", "u64"), number("mask_at"), number("n"), number("size"))
    return Source("count_mask", head, body, wide=wide)


def write_source(output: str, d: dtype, rank: int, wide: bool) -> Source:
    """Return the kernel that writes the selected elements of each block."""
    memory = CTYPES[d].memory
    out_index, value, split = (
        ("to", "x[x_at + i]", "") if output == "values" else (f"to * {rank}u", "(i64)i", _split(rank))
    )
    # Every element is written, and overwritten by the next one unless the mask is true. This avoids a branch.
    body = (
        f"{BLOCK}INDEX begin = 0;\nfor (INDEX b = 0; b < GLOBAL_ID; ++b) begin += (INDEX)counts[b];\n"
        "const INDEX end = begin + (INDEX)counts[GLOBAL_ID];\nINDEX to = begin;\n"
        f"for (INDEX i = first; to < end; ++i) {{\nout[{out_index}] = {value};\nto += mask[mask_at + i];\n}}\n{split}}}"
    )
    head = (
        reads("mask", "u8"), reads("x", memory), reads("counts", "u64"),
        writes("out", memory if output == "values" else "i64"), number("mask_at"), number("x_at"), number("n"),
        number("size"), *[number(f"n{dim}") for dim in range(rank)],
    )  # fmt: skip
    return Source(f"{output}_{memory}_{rank}d", head, body, wide=wide)


def _split(rank: int) -> str:
    """Return statements that replace the flat index at the start of each row by an index per dim."""
    if rank < 2:
        return ""
    first = f"for (to = begin; to < end; ++to) {{\nINDEX left = (INDEX)out[to * {rank}u];"
    lines = coordinates("left", rank, "n", lambda dim, index: f"out[to * {rank}u + {dim}u] = (i64)({index});")
    return "\n".join([first, *lines, "}\n"])
