"""The rows and columns of the elements of a matrix's triangle."""

from __future__ import annotations

from functools import lru_cache

from candelabra.dtypes import dtype

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source, number, writes
from candelabra_clike.types import CTYPES

GRAIN = 1 << 15
"""Elements of the matrix that justify another work-item on serial devices."""

EDGE = "const i64 edge = (i64)i + diagonal < 0 ? 0 : (i64)i + diagonal < (i64)col ? (i64)i + diagonal : (i64)col;\n"
"""The elements of row ``i`` before the diagonal."""


def _before(stop: str) -> str:
    """Return the sum of the edges of the rows whose number plus ``diagonal`` is below ``stop``, from 0 on."""
    ramp = f"({stop} < 0 ? 0 : {stop} < (i64)col + 1 ? {stop} : (i64)col + 1)"
    beyond = f"({stop} > (i64)col + 1 ? {stop} - (i64)col - 1 : 0)"
    return f"({ramp} * ({ramp} - 1) / 2 + {beyond} * (i64)col)"


def _start(i: str, upper: bool) -> str:
    """Return the number of elements of the triangle in the rows before ``i``."""
    lower = f"({_before(f'((i64){i} + diagonal)')} - {_before('diagonal')})"
    return f"(INDEX)((i64){i} * (i64)col - {lower})" if upper else f"(INDEX){lower}"


@lru_cache(None)
def compiled(engine: Engine, d: dtype, upper: bool, wide: bool) -> Launch:
    """Return the kernel in which a work-item writes some rows, or on other devices one element of the matrix."""
    type = CTYPES[d].memory
    stored = f"out[at] = ({type})i; out[total + at] = ({type})j;\n"
    first, end = ("(INDEX)edge", "col") if upper else ("0", "(INDEX)edge")
    if engine.traits.serial:
        body = (
            "const INDEX begin = GLOBAL_ID * per_item, stop = row - begin < per_item ? row : begin + per_item;\n"
            f"INDEX start = {_start('begin', upper)};\nfor (INDEX i = begin; i < stop; ++i) {{\n{EDGE}"
            f"const int count = (int)({end} - {first});\n"
            f"GLOBAL {type}* const rows = out + start;\nGLOBAL {type}* const columns = out + (total + start);\n"
            f"INDEPENDENT\nfor (int m = 0; m < count; ++m) rows[m] = ({type})i;\n"
            f"INDEPENDENT\nfor (int m = 0; m < count; ++m) columns[m] = ({type})({first} + (INDEX)m);\n"
            f"start += (INDEX)count;\n}}\n"
        )
    else:
        body = (
            f"const INDEX i = GLOBAL_ID / col, j = GLOBAL_ID % col;\n{EDGE}"
            f"if (i < row && j >= {first} && j < {end}) {{\nconst INDEX at = {_start('i', upper)} + (j - {first});\n"
            f"{stored}}}\n"
        )
    parameters = (
        writes("out", type), number("diagonal", "i64"), *map(number, ("row", "col", "total", "per_item")),
    )  # fmt: skip
    name = f"triangle_indices_{d.name}_{'upper' if upper else 'lower'}"
    return engine.compile(Source(name, parameters, body, 1 if engine.traits.serial else None, wide))


def triangle_indices(engine: Engine, row: int, col: int, offset: int, upper: bool, d: dtype) -> StridedArray:
    """Return the rows and columns of a triangle, see the operator."""
    launch, items, total, numbers = planned(engine, row, col, offset, upper, d)
    out: StridedArray = engine.empty((2, total), d)
    if launch is not None:
        launch(items, out.buffer, *numbers)
    return out


@lru_cache(4096)
def planned(
    engine: Engine, row: int, col: int, offset: int, upper: bool, d: dtype
) -> tuple[Launch | None, int, int, tuple[int, ...]]:
    """Return the launch if there are elements, its work-items, the number of elements, and the launch's numbers."""
    diagonal = min(max(offset, -row), col) + (not upper)
    below = _sum_below(diagonal + row, col) - _sum_below(diagonal, col)
    total = row * col - below if upper else below
    if not total:
        return None, 0, 0, ()
    serial, wide = engine.traits.serial, max(2 * total, row * col, row + col) >= WIDE
    per_item = max(1, GRAIN // col)
    items = -(-row // per_item) if serial else row * col
    return compiled(engine, d, upper, wide), items, total, (diagonal, row, col, total, per_item)


def _sum_below(stop: int, limit: int) -> int:
    """Return the sum of ``min(max(i, 0), limit)`` over all i below ``stop``."""
    ramp = min(max(stop, 0), limit + 1)
    return ramp * (ramp - 1) // 2 + max(stop - limit - 1, 0) * limit
