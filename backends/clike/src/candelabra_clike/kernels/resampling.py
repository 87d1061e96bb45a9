"""The product with a banded matrix along a dim: interpolation, adaptive means, and their gradients.

The derivative is a product with the transposed band, so every call gathers and results do not depend on the launch. A
work-item computes an element, or on serial devices several rows of the dims after the resampled one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

from candelabra.dtypes import FLOATING, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.types import CTYPES

Rows = tuple[tuple[float, ...], ...]
GRAIN = 2048
"""Elements of the result per work-item on serial devices."""


@lru_cache(128)
def _bytes(start: Shape, weight: Rows, value: str) -> tuple[memoryview, memoryview]:
    """Return the starts as u32, and the weights in the type of values."""
    weights = array("d" if value == "f64" else "f", [w for row in weight for w in row])
    return memoryview(array("I", start)).cast("B"), memoryview(weights).cast("B")


def _resample_for(d: dtype) -> Callable[..., Any] | None:
    if d.category != FLOATING:
        return None

    def resample(x: StridedArray, dim: int, start: Shape, weight: Rows) -> StridedArray:
        engine, x = x.engine, contiguous(x)
        lead, size, tail = prod(x.shape[:dim]), x.shape[dim], prod(x.shape[dim + 1 :])
        out = engine.empty((*x.shape[:dim], len(start), *x.shape[dim + 1 :]), d)
        if not out.size:
            return out
        buffers = []
        for data in _bytes(tuple(start), tuple(weight), CTYPES[d].value):
            buffers.append(engine.allocate(max(data.nbytes, 1)))
            engine.write(buffers[-1], 0, data)
        rows, per_item = lead * len(start), max(1, GRAIN // tail)
        launch = _compiled(engine, d, len(weight[0]), is_wide(x, out))
        items = -(-rows // per_item) if engine.traits.serial else out.size
        launch(items, out.buffer, x.buffer, *buffers, x.offset, rows, per_item, len(start), size, tail)
        return out

    return resample


@lru_cache(None)
def _compiled(engine: Engine, d: dtype, width: int, wide: bool) -> Launch:
    return engine.compile(text(engine.traits.serial, d, width, wide))


def text(serial: bool, d: dtype, width: int, wide: bool) -> Source:
    """Return the kernel for rows of ``width`` weights, which skips weights of 0."""
    c = CTYPES[d]
    head = (
        writes("out", c.memory), reads("x", c.memory), reads("start", "u32"), reads("weight", c.value),
        *map(number, ("x_at", "rows", "per_item", "count", "size", "tail")),
    )  # fmt: skip
    locate = (
        "const INDEX plane = row / count, i = row % count;\n"
        f"GLOBAL const {c.value}* const w = weight + i * {width};\n"
        f"GLOBAL const {c.memory}* const from = x + (x_at + (plane * size + (INDEX)start[i]) * tail);\n"
    )
    total = (
        f"{c.value} sum = 0;\n"
        f"for (int k = 0; k < {width}; ++k) if (w[k] != 0) sum += w[k] * {c.load('from[k * tail + j]')};\n"
        f"out[row * tail + j] = {c.store('sum')};\n"
    )
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
    return Source(f"resample_{d.name}_{width}", head, body, wide=wide)


KERNELS: dict[str, Any] = {"resample": DtypeSpecialized(_resample_for)}
