"""Copies with dims turned round, and with triangles of the last two dims left out."""

from __future__ import annotations

from functools import lru_cache

from candelabra.dtypes import COMPLEX, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import collapsed, is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.templates import walking
from candelabra_clike.templates.elementwise.elementwise import CHUNK
from candelabra_clike.templates.indexing.gathering import bits
from candelabra_clike.types import CTYPES

ALL, LOWER, UPPER = "all", "lower", "upper"
"""Which elements of a matrix are kept: all, those before a row's edge, those from the edge on."""
FARTHEST = 1 << 40
"""No diagonal need be farther away: no matrix has so many rows."""


def flipped(out: StridedArray, source: StridedArray, dims: Shape) -> StridedArray:
    """Fill ``out`` with the source in the opposite order along ``dims``."""
    start, strides = source.offset, list(source.strides)
    for dim in dims:
        start += (source.shape[dim] - 1) * strides[dim]
        strides[dim] = -strides[dim]
    return _copied(out, source, start, tuple(strides), ALL, 0)


def triangle(out: StridedArray, source: StridedArray, diagonal: int, which: str) -> StridedArray:
    """Fill ``out`` with the source up to (``LOWER``) or from (``UPPER``) a diagonal, zeros elsewhere.

    ``out`` may be the source.
    """
    shift = max(-FARTHEST, min(diagonal + (which == LOWER), FARTHEST))
    return _copied(out, source, source.offset, source.strides, which, shift)


def _copied(out: StridedArray, source: StridedArray, start: int, steps: Shape, which: str, shift: int) -> StridedArray:
    if not out.size:
        return out
    engine = out.engine
    whole = 0 if which == ALL else 2
    kept = len(out.shape) - whole
    sizes, (to, of) = collapsed(out.shape[:kept], (out.strides[:kept], steps[:kept]))
    sizes, to, of = sizes + out.shape[kept:], to + out.strides[kept:], of + steps[kept:]
    wide = is_wide(out, source)
    inner = tuple(step if step in (1, -1) else 2 for step in (to[-1], of[-1]))
    total, per_item = out.size // sizes[-1], max(1, CHUNK // sizes[-1])
    mask = (1 << (64 if wide else 32)) - 1  # offsets are computed modulo that, so steps may be negative
    compiled(engine, bits(out.dtype), len(sizes), inner, which, wide)(
        -(-total // per_item) if engine.traits.serial else out.size,
        out.buffer, source.buffer, out.offset, start, total, per_item, shift, *sizes, *to, *[s & mask for s in of],
    )  # fmt: skip
    return out


@lru_cache(None)
def compiled(engine: Engine, d: dtype, rank: int, inner: Shape, which: str, wide: bool) -> Launch:
    """The kernel on a device; ``inner`` is the last step of out and source where it is 1 or -1, 2 for all others."""
    return engine.compile(text(engine.traits.serial, d, rank, inner, which, wide))


def text(serial: bool, d: dtype, rank: int, inner: Shape, which: str, wide: bool) -> Source:
    """A row of the last dim at a time."""
    last, c = rank - 1, CTYPES[d]
    at = {n: {1: " + i", -1: " - i", 2: f" + i * {n}_s{last}"}[step] for n, step in zip(("out", "x"), inner)}
    zero = f"{c.value.upper()}(0, 0)" if d.category == COMPLEX else f"({c.memory})0"
    value, edge = f"x[x_row{at['x']}]", ""
    if which != ALL:
        value = f"i {'<' if which == LOWER else '>='} edge ? {value} : {zero}"
        edge = (
            f"i64 far = (i64)(row % n{last - 1}) + shift;\nfar = far < 0 ? 0 : far;\n"
            f"const INDEX edge = far < (i64)n{last} ? (INDEX)far : n{last};\n"
        )
    move = f"out[out_row{at['out']}] = {value};\n"
    start = walking.starts(("out", "x"), last) + edge
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
        writes("out", c.memory), reads("x", c.memory), *walking.offsets(("out", "x")), number("rows"),
        number("rows_per_item"), number("shift", "i64"), *walking.sizes(rank), *walking.strides(("out", "x"), rank),
    )  # fmt: skip
    return Source(f"copy_{which}_{c.memory}_{rank}d", head, body, wide=wide)
