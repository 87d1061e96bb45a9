"""The product with a banded matrix along a dim, and with its transpose: interpolation, adaptive means, gradients.

Results do not depend on the launch. The starts of the rows do not decrease, so a binary search finds the rows that read
a column. A work-item computes an element, or on serial devices several rows of the dims after the resampled one, to
which it adds one weighted row of the input after the other. The transpose along the last dim adds one row of the matrix
after the other to a line of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

from candelabra.dtypes import FLOATING, dtype

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.types import CTYPES

GRAIN = 2048
"""Elements of the result per work-item on serial devices."""
BLOCK = 256
"""Elements of a row that are accumulated together."""


def _run(x: StridedArray, dim: int, start: StridedArray, weight: StridedArray, size: int, adjoint: bool) -> Any:
    """Launch the kernel for a result of ``size`` elements along ``dim``."""
    engine, x, start, weight = x.engine, contiguous(x), contiguous(start), contiguous(weight)
    lead, read, tail = prod(x.shape[:dim]), x.shape[dim], prod(x.shape[dim + 1 :])
    out = engine.empty((*x.shape[:dim], size, *x.shape[dim + 1 :]), x.dtype)
    if not out.size:
        return out
    rows, per_item = lead * size, max(1, GRAIN // tail)
    if adjoint and tail == 1:  # whole planes
        per_item = -(-per_item // size) * size
    launch = _compiled(engine, x.dtype, weight.shape[1], adjoint, is_wide(x, out, weight))
    items = -(-rows // per_item) if engine.traits.serial else out.size
    offsets = x.offset, start.offset, weight.offset
    launch(items, out.buffer, x.buffer, start.buffer, weight.buffer, *offsets, rows, per_item, size, read, tail)
    return out


def _resample(x: StridedArray, dim: int, start: StridedArray, weight: StridedArray) -> StridedArray | Any:
    return _run(x, dim, start, weight, start.shape[0], False)


def _resample_adjoint(
    g: StridedArray, dim: int, start: StridedArray, weight: StridedArray, size: int
) -> StridedArray | Any:
    return _run(g, dim, start, weight, size, True)


def _for(function: Callable[..., Any]) -> DtypeSpecialized:
    return DtypeSpecialized(lambda d: function if d.category == FLOATING else None)


@lru_cache(None)
def _compiled(engine: Engine, d: dtype, width: int, adjoint: bool, wide: bool) -> Launch:
    return engine.compile(text(engine.traits.serial, d, width, adjoint, wide))


_SEARCH = """INDEX last = size;
while (first < last) {{
const INDEX middle = first + (last - first) / 2;
if ((INDEX)start[middle] + {width} <= i) first = middle + 1; else last = middle;
}}
"""
"""Finds the first row whose last column is not before column ``i``."""


def text(serial: bool, d: dtype, width: int, adjoint: bool, wide: bool) -> Source:
    """Return the kernel for rows of ``width`` weights, which skips weights of 0."""
    c = CTYPES[d]
    head = (
        writes("out", c.memory), reads("x", c.memory), reads("starts", "i64"), reads("weights", c.memory),
        *map(number, ("x_at", "start_at", "weight_at", "rows", "per_item", "count", "size", "tail")),
    )  # fmt: skip
    source = f"GLOBAL const {c.memory}* const from = x + (x_at + plane * size * tail);\n"
    if adjoint:
        advance = _SEARCH.format(width=width)
        if serial:  # the rows of a work-item follow one another
            advance = (
                f"if (row == begin) {{\n{advance}}} else {{\nif (i == 0) first = 0;\n"
                f"while (first < size && (INDEX)start[first] + {width} <= i) ++first;\n}}\n"
            )
        loop = "for (INDEX r = first; r < size && (INDEX)start[r] <= i; ++r)"
        w, place = f"weight[r * {width} + (i - (INDEX)start[r])]", "r"
    else:
        advance, loop = "first = (INDEX)start[i];\n", f"for (INDEX k = 0; k < {width}; ++k)"
        w, place = f"weight[i * {width} + k]", "(first + k)"
    weigh = f"{loop} {{\nconst {c.value} w = {c.load(w)};\nif (w == 0) continue;\n"
    pointers = (
        "GLOBAL const i64* const start = starts + start_at;\n"
        f"GLOBAL const {c.memory}* const weight = weights + weight_at;\n"
    )
    one = (
        f"{c.value} sum = 0;\n{weigh}sum += w * {c.load(f'from[{place} * tail + j]')};\n}}\n"
        f"out[row * tail + j] = {c.store('sum')};\n"
    )
    if serial:
        block = (
            f"for (INDEX j0 = 0; j0 < tail; j0 += {BLOCK}u) {{\n{c.value} sums[{BLOCK}];\n"
            f"const u32 n = tail - j0 < {BLOCK}u ? (u32)(tail - j0) : {BLOCK}u;\n"
            f"for (u32 j = 0; j < n; ++j) sums[j] = 0;\n{weigh}"
            f"GLOBAL const {c.memory}* const line = from + {place} * tail + j0;\n"
            f"INDEPENDENT\nfor (u32 j = 0; j < n; ++j) sums[j] += w * {c.load('line[j]')};\n}}\n"
            f"INDEPENDENT\nfor (u32 j = 0; j < n; ++j) out[row * tail + j0 + j] = {c.store('sums[j]')};\n}}\n"
        )
        line, spread = block, _lines(d, width)
        if adjoint:
            line, spread = f"if (tail == 1) {{\nconst INDEX j = 0;\n{one}}} else {{\n{block}}}\n", ""
        if adjoint and c.memory == c.value:  # a sum is stored once in 16 bits
            spread = (
                f"if (tail == 1) {{\nfor (INDEX row = begin; row < end; row += count) {{\n"
                f"GLOBAL const {c.memory}* const from = x + (x_at + row / count * size);\n"
                "for (INDEX k = 0; k < count; ++k) out[row + k] = 0;\n"
                "for (INDEX r = 0; r < size; ++r) {\n"
                f"GLOBAL {c.memory}* const to = out + row + (INDEX)start[r];\n"
                f"GLOBAL const {c.memory}* const w = weight + r * {width};\nconst {c.value} g = from[r];\n"
                f"INDEPENDENT\nfor (u32 k = 0; k < {width}u; ++k) to[k] += w[k] == 0 ? 0 : w[k] * g;\n}}\n}}\n"
                "} else {\n"
            )
            line = block
        body = (
            "const INDEX begin = GLOBAL_ID * per_item, rest = rows - begin;\n"
            f"const INDEX end = begin + (rest < per_item ? rest : per_item);\n{pointers}{spread}"
            "INDEX first = 0, plane = begin / count, i = begin % count;\n"  # a division per row would take most time
            f"for (INDEX row = begin; row < end; ++row) {{\n{source}{advance}{line}"
            "if (++i == count) { i = 0; ++plane; }\n}\n" + ("}\n" if spread else "")
        )
    else:
        body = (
            "const INDEX element = GLOBAL_ID;\n"
            "if (element < rows * tail) {\nconst INDEX row = element / tail, j = element % tail;\n"
            f"const INDEX plane = row / count, i = row % count;\n{pointers}{source}INDEX first = 0;\n{advance}{one}}}\n"
        )
    name = "resample_adjoint" if adjoint else "resample"
    return Source(f"{name}_{d.name}_{width}", head, body, wide=wide)


def _lines(d: dtype, width: int) -> str:
    """Return the statements for the rows of a work-item along the last dim, plane by plane, and the start of others.

    The loop over a plane has no branch, so that compilers vectorize it.
    """
    c, unroll = CTYPES[d], "UNROLL\n" if width <= 16 else ""
    return (
        "if (tail == 1) {\nINDEX plane = begin / count, i = begin % count;\nfor (INDEX row = begin; row < end;) {\n"
        "const u32 n = (u32)(count - i < end - row ? count - i : end - row);\n"
        f"GLOBAL const {c.memory}* const from = x + (x_at + plane * size);\n"
        f"GLOBAL const i64* const starts_here = start + i;\n"
        f"GLOBAL const {c.memory}* const weights_here = weight + i * {width};\n"
        f"INDEPENDENT\nfor (u32 j = 0; j < n; ++j) {{\n{c.value} sum = 0;\n{unroll}"
        f"for (u32 k = 0; k < {width}u; ++k) {{\nconst {c.value} w = {c.load(f'weights_here[j * {width}u + k]')};\n"
        f"const {c.value} term = w * {c.load('from[(u32)starts_here[j] + k]')};\nsum += w == 0 ? 0 : term;\n}}\n"
        f"out[row + j] = {c.store('sum')};\n}}\nrow += n;\ni = 0;\n++plane;\n}}\n}} else {{\n"
    )


KERNELS: dict[str, Any] = {"resample": _for(_resample), "resample_adjoint": _for(_resample_adjoint)}
