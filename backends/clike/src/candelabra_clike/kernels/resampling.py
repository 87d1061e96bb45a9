"""The product with a banded matrix along a dim, and with its transpose: interpolation, adaptive means, gradients.

Both gather, so results do not depend on the launch. The starts of the rows do not decrease, so a binary search finds
the rows that read a column. A work-item computes an element, or on serial devices several rows of the dims after the
resampled one.
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


def _run(x: StridedArray, dim: int, start: StridedArray, weight: StridedArray, size: int, adjoint: bool) -> Any:
    """Launch the kernel for a result of ``size`` elements along ``dim``."""
    engine, x, start, weight = x.engine, contiguous(x), contiguous(start), contiguous(weight)
    lead, read, tail = prod(x.shape[:dim]), x.shape[dim], prod(x.shape[dim + 1 :])
    out = engine.empty((*x.shape[:dim], size, *x.shape[dim + 1 :]), x.dtype)
    if not out.size:
        return out
    rows, per_item = lead * size, max(1, GRAIN // tail)
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


def text(serial: bool, d: dtype, width: int, adjoint: bool, wide: bool) -> Source:
    """Return the kernel for rows of ``width`` weights, which skips weights of 0."""
    c = CTYPES[d]
    head = (
        writes("out", c.memory), reads("x", c.memory), reads("starts", "i64"), reads("weights", c.memory),
        *map(number, ("x_at", "start_at", "weight_at", "rows", "per_item", "count", "size", "tail")),
    )  # fmt: skip
    locate = (
        "const INDEX plane = row / count, i = row % count;\n"
        "GLOBAL const i64* const start = starts + start_at;\n"
        f"GLOBAL const {c.memory}* const weight = weights + weight_at;\n"
        f"GLOBAL const {c.memory}* const from = x + (x_at + plane * size * tail);\n"
    )
    if adjoint:
        # The first row whose last column is not before column i.
        locate += (
            "INDEX first = 0, last = size;\n"
            "while (first < last) {\nconst INDEX middle = first + (last - first) / 2;\n"
            f"if ((INDEX)start[middle] + {width} <= i) first = middle + 1; else last = middle;\n}}\n"
        )
        each = (
            "for (INDEX r = first; r < size && (INDEX)start[r] <= i; ++r) {\n"
            f"const {c.value} w = {c.load(f'weight[r * {width} + (i - (INDEX)start[r])]')};\n"
            f"if (w != 0) sum += w * {c.load('from[r * tail + j]')};\n}}\n"
        )
    else:
        locate += "const INDEX first = (INDEX)start[i];\n"
        each = (
            f"for (INDEX k = 0; k < {width}; ++k) {{\n"
            f"const {c.value} w = {c.load(f'weight[i * {width} + k]')};\n"
            f"if (w != 0) sum += w * {c.load('from[(first + k) * tail + j]')};\n}}\n"
        )
    total = f"{c.value} sum = 0;\n{each}out[row * tail + j] = {c.store('sum')};\n"
    if serial:
        body = (
            "const INDEX begin = GLOBAL_ID * per_item, rest = rows - begin;\n"
            "const INDEX end = begin + (rest < per_item ? rest : per_item);\n"
            f"for (INDEX row = begin; row < end; ++row) {{\n{locate}"
            f"INDEPENDENT\nfor (INDEX j = 0; j < tail; ++j) {{\n{total}}}\n}}\n"
        )
    else:
        body = (
            "const INDEX element = GLOBAL_ID;\n"
            f"if (element < rows * tail) {{\nconst INDEX row = element / tail, j = element % tail;\n{locate}{total}}}\n"
        )
    name = "resample_adjoint" if adjoint else "resample"
    return Source(f"{name}_{d.name}_{width}", head, body, wide=wide)


KERNELS: dict[str, Any] = {"resample": _for(_resample), "resample_adjoint": _for(_resample_adjoint)}
