"""What a mask keeps, one after the other: how many there are is counted on the device and read, then they are written.

The mask is cut into blocks, a work-item each. Every block counts; the host adds the counts up, for it has to know how
much memory the result takes; then every block adds up what stands before it, and writes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from candelabra.dtypes import dtype, int64, uint64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates.indexing.gathering import bits
from candelabra_clike.types import CTYPES

LEAST = 256
"""Elements of a block, at least."""
LANES = 1024
"""Blocks on devices whose work-items are lanes, at most."""


class Counted(NamedTuple):
    """A contiguous mask, with how much of it holds in each block of ``size`` elements."""

    mask: StridedArray
    counts: StridedArray
    blocks: int
    size: int
    total: int


def counted(mask: StridedArray) -> Counted:
    """Count a contiguous mask (bytes), which waits for the device."""
    engine = mask.engine
    most = 4 * engine.traits.compute_units if engine.traits.serial else LANES
    size = max(LEAST, -(-mask.size // most))
    blocks = -(-mask.size // size)
    counts = engine.empty((blocks,), uint64)
    if not blocks:
        return Counted(mask, counts, 0, size, 0)
    wide = mask.offset + mask.size >= WIDE
    compiled(engine, "", uint64, 0, wide)(blocks, mask.buffer, counts.buffer, mask.offset, mask.size, size)
    return Counted(
        mask, counts, blocks, size, sum(memoryview(engine.read(counts.buffer, 0, 8 * blocks)).cast("B").cast("Q"))
    )


def values(found: Counted, x: StridedArray) -> StridedArray:
    """The elements of ``x``, which is contiguous and of the mask's shape, where it holds."""
    out = x.engine.empty((found.total,), x.dtype)
    return _written(found, out, x, (), "values")


def places(found: Counted, shape: Shape) -> StridedArray:
    """The indices of what holds, a row each, in a mask of ``shape``."""
    out = found.mask.engine.empty((found.total, len(shape)), int64)
    return _written(found, out, found.mask, shape, "places")


def _written(found: Counted, out: StridedArray, x: StridedArray, shape: Shape, what: str) -> StridedArray:
    if not out.size:
        return out
    mask, wide = found.mask, max(array.offset + array.size for array in (found.mask, out, x)) >= WIDE
    compiled(out.engine, what, bits(x.dtype), len(shape), wide)(
        found.blocks, mask.buffer, x.buffer, found.counts.buffer, out.buffer, mask.offset, x.offset, mask.size,
        found.size, *shape,
    )  # fmt: skip
    return out


@lru_cache(None)
def compiled(engine: Engine, what: str, d: dtype, rank: int, wide: bool) -> Launch:
    """A kernel on a device: the one that counts, or one that writes ``"values"`` or ``"places"``."""
    return engine.compile(writing(what, d, rank, wide) if what else counting(wide))


BLOCK = (
    "const INDEX first = GLOBAL_ID * size;\nif (first < n) {\n"
    "const INDEX rest = n - first, last = first + (rest < size ? rest : size);\n"
)


def counting(wide: bool) -> Source:
    """How much holds in each block."""
    body = (
        f"{BLOCK}INDEX count = 0;\nfor (INDEX i = first; i < last; ++i) count += mask[mask_at + i];\n"
        "counts[GLOBAL_ID] = (u64)count;\n}"
    )
    head = (reads("mask", "u8"), writes("counts", "u64"), number("mask_at"), number("n"), number("size"))
    return Source("count_mask", head, body, wide=wide)


def writing(what: str, d: dtype, rank: int, wide: bool) -> Source:
    """What holds in each block, after that of all blocks before."""
    memory = CTYPES[d].memory
    there, value, split = ("to", "x[x_at + i]", "") if what == "values" else (f"to * {rank}u", "(i64)i", _split(rank))
    # Every element is written, and written over by the next one unless the mask holds: that is no branch to guess.
    body = (
        f"{BLOCK}INDEX begin = 0;\nfor (INDEX b = 0; b < GLOBAL_ID; ++b) begin += (INDEX)counts[b];\n"
        "const INDEX end = begin + (INDEX)counts[GLOBAL_ID];\nINDEX to = begin;\n"
        f"for (INDEX i = first; to < end; ++i) {{\nout[{there}] = {value};\nto += mask[mask_at + i];\n}}\n{split}}}"
    )
    head = (
        reads("mask", "u8"), reads("x", memory), reads("counts", "u64"),
        writes("out", memory if what == "values" else "i64"), number("mask_at"), number("x_at"), number("n"),
        number("size"), *[number(f"n{dim}") for dim in range(rank)],
    )  # fmt: skip
    return Source(f"{what}_{memory}_{rank}d", head, body, wide=wide)


def _split(rank: int) -> str:
    """Flat indices, each at the beginning of its row, become an index per dim."""
    if rank < 2:
        return ""
    lines = [f"for (to = begin; to < end; ++to) {{\nINDEX left = (INDEX)out[to * {rank}u];"]
    for dim in range(rank - 1, 0, -1):
        lines.append(f"out[to * {rank}u + {dim}u] = (i64)(left % n{dim}); left /= n{dim};")
    return "\n".join([*lines, f"out[to * {rank}u] = (i64)left;\n}}\n"])
