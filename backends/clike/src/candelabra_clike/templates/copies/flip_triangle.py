"""Copies that reverse dims, and copies of triangles of the last two dims."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from candelabra.dtypes import COMPLEX, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.language import INDEX, Value, cast, constant, pair, part_type, select
from candelabra_clike.language.kernels import KernelBuilder, built
from candelabra_clike.layouts import collapsed, is_wide
from candelabra_clike.source import Source
from candelabra_clike.templates.elementwise.elementwise import CHUNK
from candelabra_clike.templates.index_walker import declare_offsets
from candelabra_clike.templates.indexing.gather import bits
from candelabra_clike.types import CTYPES

ALL, LOWER, UPPER = "all", "lower", "upper"
"""The elements of a row that are copied: all, those before the edge of the triangle, or those from the edge on."""
MAX_DIAGONAL = 1 << 40
"""A bound on the diagonal that exceeds the number of rows of any matrix."""


def flip(out: StridedArray, source: StridedArray, dims: Shape) -> StridedArray:
    """Fill ``out`` with the source reversed along ``dims``."""
    start, strides = source.offset, list(source.strides)
    for dim in dims:
        start += (source.shape[dim] - 1) * strides[dim]
        strides[dim] = -strides[dim]
    return _copy(out, source, start, tuple(strides), ALL, 0)


def triangle(out: StridedArray, source: StridedArray, diagonal: int, part: str) -> StridedArray:
    """Fill ``out`` with the triangle of the source up to (``LOWER``) or from (``UPPER``) a diagonal, and zeros
    elsewhere.

    ``out`` may be the source.
    """
    shift = max(-MAX_DIAGONAL, min(diagonal + (part == LOWER), MAX_DIAGONAL))
    return _copy(out, source, source.offset, source.strides, part, shift)


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
    compiled(engine, bits(out.dtype), len(sizes), inner, part, wide)(
        -(-total // per_item) if engine.traits.serial else out.size,
        out.buffer, source.buffer, out.offset, start, total, per_item, shift, *sizes, *to, *[s & mask for s in of],
    )  # fmt: skip
    return out


@lru_cache(None)
def compiled(engine: Engine, d: dtype, rank: int, inner: Shape, part: str, wide: bool) -> Launch:
    """Return the compiled kernel. ``inner`` is the last stride of out and source if it is 1 or -1, and 2 otherwise."""
    return engine.compile(source(engine.traits.serial, d, rank, inner, part, wide))


@built("flip or triangle")
def source(serial: bool, d: dtype, rank: int, inner: Shape, part: str, wide: bool) -> Source:
    """Return the kernel, which copies one row of the last dim at a time."""
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
