"""Copies that reverse dims, and copies of triangles of the last two dims."""

from __future__ import annotations

from functools import lru_cache

from candelabra.dtypes import COMPLEX, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import collapsed, is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates import index_walker
from candelabra_clike.templates.elementwise.elementwise import CHUNK
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
    return engine.compile(text(engine.traits.serial, d, rank, inner, part, wide))


def text(serial: bool, d: dtype, rank: int, inner: Shape, part: str, wide: bool) -> Source:
    """Return the kernel, which copies one row of the last dim at a time."""
    last, c = rank - 1, CTYPES[d]
    at = {n: {1: " + i", -1: " - i", 2: f" + i * {n}_s{last}"}[step] for n, step in zip(("out", "x"), inner)}
    zero = f"{c.value.upper()}(0, 0)" if d.category == COMPLEX else f"({c.memory})0"
    value, edge = f"x[x_row{at['x']}]", ""
    if part != ALL:
        value = f"i {'<' if part == LOWER else '>='} edge ? {value} : {zero}"
        edge = (
            f"i64 far = (i64)(row % n{last - 1}) + shift;\nfar = far < 0 ? 0 : far;\n"
            f"const INDEX edge = far < (i64)n{last} ? (INDEX)far : n{last};\n"
        )
    move = f"out[out_row{at['out']}] = {value};\n"
    start = index_walker.row_offsets(("out", "x"), last) + edge
    if serial:
        body = (
            "const INDEX first = GLOBAL_ID * rows_per_item, rest = rows - first;\n"
            "const INDEX end = first + (rest < rows_per_item ? rest : rows_per_item);\n"
            f"for (INDEX row = first; row < end; ++row) {{\n{start}for (INDEX i = 0; i < n{last}; ++i) {move}}}"
        )
    else:
        body = (
            "const INDEX element = GLOBAL_ID;\n"
            f"if (element < rows * n{last}) {{\nconst INDEX row = element / n{last}, i = element % n{last};\n"
            f"{start}{move}}}"
        )
    head = (
        writes("out", c.memory), reads("x", c.memory), *index_walker.offset_parameters(("out", "x")), number("rows"),
        number("rows_per_item"), number("shift", "i64"), *index_walker.size_parameters(rank),
        *index_walker.stride_parameters(("out", "x"), rank),
    )  # fmt: skip
    return Source(f"copy_{part}_{c.memory}_{rank}d", head, body, wide=wide)
