"""Selection by masks, nonzero elements, flips and triangles.

The elements that a mask selects are written in order. The mask is divided into blocks, one work-item each. Every block
counts its elements. The host adds up the counts, because it needs the size of the result. Then every block computes its
offset from the counts of the blocks before it, and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from candelabra.dtypes import COMPLEX, bool_, dtype, int64, uint64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import compiled
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.language import INDEX, Value, cast, constant, pair, part_type, select
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import WIDE, broadcast, broadcast_strides, collapsed, is_wide
from candelabra_clike.source import Source
from candelabra_clike.templates.elementwise.elementwise import CHUNK, cast_kernel
from candelabra_clike.templates.index_walker import declare_offsets, each_coordinate
from candelabra_clike.templates.indexing.gather import bits
from candelabra_clike.types import CTYPES

ALL, LOWER, UPPER = "all", "lower", "upper"
"""The elements of a row that are copied: all, those before the edge of the triangle, or those from the edge on."""
MAX_DIAGONAL = 1 << 40
"""A bound on the diagonal that exceeds the number of rows of any matrix."""


def _copy(out: StridedArray, source: StridedArray, start: int, steps: Shape, part: str, shift: int) -> StridedArray:
    if not out.size:
        return out
    engine = out.engine
    whole = 0 if part == ALL else 2
    kept = len(out.shape) - whole
    sizes, (to, of) = collapsed(out.shape[:kept], (out.strides[:kept], steps[:kept]))
    sizes, to, of = sizes + out.shape[kept:], to + out.strides[kept:], of + steps[kept:]
    wide = is_wide(out, source)
    inner = tuple(step if step in (1, -1) else 2 for step in (to[-1], of[-1]))
    total, per_item = out.size // sizes[-1], max(1, CHUNK // sizes[-1])
    mask = (1 << (64 if wide else 32)) - 1  # offsets are computed modulo this number, so strides may be negative
    compiled(engine, copy_source, engine.traits.serial, bits(out.dtype), len(sizes), inner, part, wide)(
        -(-total // per_item) if engine.traits.serial else out.size,
        out.buffer, source.buffer, out.offset, start, total, per_item, shift, *sizes, *to, *[s & mask for s in of],
    )  # fmt: skip
    return out


@built("flip or triangle")
def copy_source(serial: bool, d: dtype, rank: int, inner: Shape, part: str, wide: bool) -> Source:
    """Return the kernel, which copies one row of the last dim at a time. ``inner`` is the last stride of out and source
    if it is 1 or -1, and 2 otherwise.
    """
    last, c = rank - 1, CTYPES[d]
    k = KernelBuilder(f"copy_{part}_{c.memory}_{rank}d", wide)
    out, x = k.writes("out", c.memory), k.reads("x", c.memory)
    starts = {name: k.number(f"{name}_at") for name in ("out", "x")}
    rows, per_item, shift = k.number("rows"), k.number("rows_per_item"), k.number("shift", "i64")
    n = k.per_dim("n", rank)
    strides = {name: k.per_dim(f"{name}_s", rank) for name in starts}
    zero = pair(constant(part_type(c.value), 0), 0) if d.category == COMPLEX else constant(c.memory, 0)

    def moving(row: Value) -> Callable[[Value], None]:
        """Declare what is the same for all elements of a row. Returns the function that copies one of them."""
        at = declare_offsets(k, starts, strides, row, n[:last])
        if part != ALL:
            far = k.variable("far", cast("i64", row % n[last - 1]) + shift)
            k.assign(far, select(far < 0, 0, far))
            edge = k.let("edge", select(far < cast("i64", n[last]), cast(INDEX, far), n[last]))

        def move(i: Value) -> None:
            to, of = (
                {1: at[name] + i, -1: at[name] - i}.get(step, at[name] + i * strides[name][last])
                for name, step in zip(("out", "x"), inner, strict=True)
            )
            inside = None if part == ALL else i < edge if part == LOWER else i >= edge
            out[to] = x[of] if inside is None else select(inside, x[of], zero)

        return move

    if serial:
        with k.share("row", rows, per_item) as row:
            move = moving(row)
            with k.loop("i", 0, n[last]) as i:
                move(i)
    else:
        with k.when(k.item < rows * n[last]):
            row, i = k.let("row", k.item // n[last]), k.let("i", k.item % n[last])
            moving(row)(i)
    return k.source()


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
    compiled(engine, count_source, wide)(blocks, mask.buffer, counts.buffer, mask.offset, mask.size, size)
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
    compiled(out.engine, write_source, output, bits(x.dtype), len(shape), wide)(
        counted.blocks, mask.buffer, x.buffer, counted.counts.buffer, out.buffer, mask.offset, x.offset, mask.size,
        counted.size, *shape,
    )  # fmt: skip
    return out


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


def nonzero(x: StridedArray) -> StridedArray:
    """The indices of the nonzero elements, in C order."""
    mask = contiguous(x) if x.dtype is bool_ else cast_kernel(x.dtype, bool_)(x, out=x.engine.empty(x.shape, bool_))
    return select_indices(count_mask(mask), x.shape)


def masked_select(x: StridedArray, mask: StridedArray) -> StridedArray:
    """The elements where the mask is true, in C order."""
    shape = broadcast([x.shape, mask.shape])
    x, mask = (contiguous(a.restrided(shape, broadcast_strides(a, shape), a.offset)) for a in (x, mask))
    return select_values(count_mask(mask), x)


def flip(x: StridedArray, dims: tuple[int, ...] | None) -> StridedArray:
    """Reverse the order along ``dims`` (None: all)."""
    start, strides = x.offset, list(x.strides)
    for dim in range(len(x.shape)) if dims is None or not x.shape else dims:
        start += (x.shape[dim] - 1) * strides[dim]
        strides[dim] = -strides[dim]
    return _copy(x.engine.empty(x.shape, x.dtype), x, start, tuple(strides), ALL, 0)


def _triangle(side: str, inplace: bool) -> Any:
    """Return the kernel that copies a triangle up to (``LOWER``) or from (``UPPER``) a diagonal, with zeros elsewhere.

    In place, the result is the array itself.
    """

    def kernel(x: StridedArray, diagonal: int) -> StridedArray:
        if len(x.shape) < 2:
            raise ValueError(f"a triangle needs at least 2 dims, got shape {x.shape}")
        out = x if inplace else x.engine.empty(x.shape, x.dtype)
        shift = max(-MAX_DIAGONAL, min(diagonal + (side == LOWER), MAX_DIAGONAL))
        return _copy(out, x, x.offset, x.strides, side, shift)

    return kernel


KERNELS: dict[str, Any] = {
    "nonzero": nonzero, "masked_select": masked_select, "flip": flip,
    "tril": _triangle(LOWER, False), "tril_": _triangle(LOWER, True),
    "triu": _triangle(UPPER, False), "triu_": _triangle(UPPER, True),
}  # fmt: skip
