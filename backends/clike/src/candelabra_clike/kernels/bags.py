"""Sums of bags of rows of a table. The rows are read from the table and not stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.dtypes import FLOATING, dtype

from candelabra_clike.array import StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.indexing import OUT_OF_RANGE
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source, number, reads, writes
from candelabra_clike.types import CTYPES

GRAIN = 1 << 14
"""Elements of the result that a work-item computes on serial devices."""
COLUMNS, BLOCK = 64, 64
"""The columns that a work-item sums at a time on serial devices, and the rows that are added to one partial sum."""
NO_ROW = IndexOutOfBounds("bag_sums", IndexError, OUT_OF_RANGE)

BOUNDS = (
    "const i64 from = starts[starts_at + bag] < 0 ? 0 : starts[starts_at + bag];\n"
    "const i64 next = bag + 1 < bags ? starts[starts_at + bag + 1] : (i64)n;\n"
    "const i64 to = next < (i64)n ? next : (i64)n;\n"
)
"""The positions of a bag, within the indices whatever the starts are."""
ROW = (
    "const i64 chosen = index[index_at + (INDEX)p];\n"
    "if ((u64)chosen >= (u64)rows) { wrong = 1; value = chosen; continue; }\n"
)


@lru_cache(None)
def compiled(engine: Engine, d: dtype, scaled: bool, wide: bool) -> Launch:
    """Return the kernel in which a work-item computes some bags, or on other devices one element."""
    c = CTYPES[d]
    parameters = (
        writes("out", c.memory), reads("x", c.memory), reads("index", "i64"), reads("starts", "i64"),
        *([reads("scales", c.memory)] if scaled else []), writes("errors", "i64"), number("ticket", "u32"),
        *map(number, ("x_at", "index_at", "starts_at", *(["scales_at"] if scaled else []))),
        *map(number, ("bags", "per_item", "n", "rows", "width")),
    )  # fmt: skip
    serial = engine.traits.serial
    scale = f"const {c.value} scale = {c.load('scales[scales_at + (INDEX)p]')};\n" if scaled else ""
    body = "u32 wrong = 0; i64 value = 0;\n" + (_bags if serial else _element)(d, scale)
    body += "if (wrong) report_error(errors, ticket, value, 0, (i64)rows);"
    name = f"bag_sums_{d.name}{'_scaled' if scaled else ''}"
    return engine.compile(Source(name, parameters, body, group=1 if serial else None, wide=wide))


def _bags(d: dtype, scale: str) -> str:
    c = CTYPES[d]
    product = c.load("row[j]") + (" * scale" if scale else "")
    return (
        "const INDEX first = GLOBAL_ID * per_item, rest = bags - first;\n"
        "const INDEX end = first + (rest < per_item ? rest : per_item);\n"
        "for (INDEX bag = first; bag < end; ++bag) {\n"
        f"{BOUNDS}for (INDEX column = 0; column < width; column += {COLUMNS}u) {{\n"
        f"const int m = width - column < {COLUMNS}u ? (int)(width - column) : {COLUMNS};\n"
        f"{c.value} total[{COLUMNS}];\nfor (int j = 0; j < {COLUMNS}; ++j) total[j] = 0;\n"
        f"for (i64 begin = from; begin < to; begin += {BLOCK}) {{\n"
        f"const i64 stop = begin + {BLOCK} < to ? begin + {BLOCK} : to;\n"
        f"{c.value} part[{COLUMNS}];\nfor (int j = 0; j < {COLUMNS}; ++j) part[j] = 0;\n"
        f"for (i64 p = begin; p < stop; ++p) {{\n{ROW}{scale}"
        f"GLOBAL const {c.memory}* const row = x + (x_at + (INDEX)chosen * width + column);\n"
        f"if (m == {COLUMNS}) {{ INDEPENDENT for (int j = 0; j < {COLUMNS}; ++j) part[j] += {product}; }}\n"
        f"else for (int j = 0; j < m; ++j) part[j] += {product};\n}}\n"
        f"for (int j = 0; j < {COLUMNS}; ++j) total[j] += part[j];\n}}\n"
        f"GLOBAL {c.memory}* const o = out + (bag * width + column);\n"
        f"for (int j = 0; j < m; ++j) o[j] = {c.store('total[j]')};\n}}\n}}\n"
    )


def _element(d: dtype, scale: str) -> str:
    c = CTYPES[d]
    product = c.load("x[x_at + (INDEX)chosen * width + column]") + (" * scale" if scale else "")
    return (
        "if (GLOBAL_ID < bags * width) {\nconst INDEX bag = GLOBAL_ID / width, column = GLOBAL_ID % width;\n"
        f"{BOUNDS}{c.value} total = 0;\nfor (i64 begin = from; begin < to; begin += {BLOCK}) {{\n"
        f"const i64 stop = begin + {BLOCK} < to ? begin + {BLOCK} : to;\n{c.value} part = 0;\n"
        f"for (i64 p = begin; p < stop; ++p) {{\n{ROW}{scale}part += {product};\n}}\ntotal += part;\n}}\n"
        f"out[GLOBAL_ID] = {c.store('total')};\n}}\n"
    )


def _sums_for(d: dtype) -> Callable[..., StridedArray] | None:
    if d.category != FLOATING:
        return None

    def bag_sums(
        weight: StridedArray, indices: StridedArray, starts: StridedArray, scales: StridedArray | None,
        scale_grad_by_freq: bool,
    ) -> StridedArray:  # fmt: skip
        engine, (bags,), (rows, width) = weight.engine, starts.shape, weight.shape
        if len(indices.shape) != 1 or (scales is not None and scales.shape != indices.shape):
            raise RuntimeError("bag_sums takes a vector of indices, and a scale for each of them")
        out = engine.empty((bags, width), d)
        if not out.size:
            return out
        operands = [contiguous(x) for x in (weight, indices, starts, *([] if scales is None else [scales]))]
        wide = max(out.size, *[x.offset + x.size for x in operands]) >= WIDE
        errors, ticket = engine.errors.register(NO_ROW, [])
        serial = engine.traits.serial
        per_item = max(1, GRAIN // width) if serial else 1
        compiled(engine, d, scales is not None, wide)(
            -(-bags // per_item) if serial else out.size, out.buffer, *[x.buffer for x in operands], errors, ticket,
            *[x.offset for x in operands], bags, per_item, indices.size, rows, width,
        )  # fmt: skip
        return out

    return bag_sums


KERNELS: dict[str, Any] = {"bag_sums": DtypeSpecialized(_sums_for)}
