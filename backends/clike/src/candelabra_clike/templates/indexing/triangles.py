"""The rows and columns of the elements of a matrix's triangle."""

from __future__ import annotations

from functools import lru_cache

from candelabra.dtypes import dtype

from candelabra_clike.array import StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.language import INDEX, Value, and_then, cast, constant, select
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source
from candelabra_clike.types import CTYPES

GRAIN = 1 << 15
"""Elements of the matrix that justify another work-item on serial devices."""


@built("triangle_indices")
def source(d: dtype, upper: bool, serial: bool, wide: bool) -> Source:
    """Return the kernel in which a work-item writes some rows, or on other devices one element of the matrix."""
    k = KernelBuilder(f"triangle_indices_{d.name}_{'upper' if upper else 'lower'}", wide)
    out, diagonal = k.writes("out", CTYPES[d].memory), k.number("diagonal", "i64")
    row, col, total, per_item = k.numbers("row", "col", "total", "per_item")
    columns = cast("i64", col)

    def below(stop: Value) -> Value:
        """Return the sum of the edges of the rows whose number plus ``diagonal`` is below ``stop``, from 0 on."""
        ramp = select(stop < 0, 0, least(stop, columns + 1))
        beyond = select(stop > columns + 1, stop - columns - 1, 0)
        return (ramp * (ramp - 1) >> 1) + beyond * columns

    def start(i: Value) -> Value:
        """Return the number of elements of the triangle in the rows before ``i``."""
        lower = below(cast("i64", i) + diagonal) - below(diagonal)
        return cast(INDEX, cast("i64", i) * columns - lower if upper else lower)

    def bounds(i: Value) -> tuple[Value, Value]:
        """Declare the first column of row ``i`` and the one after the last: those on one side of the diagonal."""
        place = cast("i64", i) + diagonal
        edge = k.let("edge", cast(INDEX, select(place < 0, 0, least(place, columns))))
        return (edge, col) if upper else (constant(INDEX, 0), edge)

    if not serial:
        i, j = k.let("i", k.item // col), k.let("j", k.item % col)
        first, end = bounds(i)
        with k.when(and_then(i < row, j >= first, j < end)):
            at = k.let("at", start(i) + (j - first))
            out[at] = cast(out.type, i)
            out[total + at] = cast(out.type, j)
        return k.source()
    begin = k.let("begin", k.item * per_item)
    at = k.variable("at", start(begin))
    with k.loop("i", begin, k.let("stop", begin + least(row - begin, per_item))) as i:
        first, end = bounds(i)
        many = k.let("many", cast("i32", end - first))
        to_rows, to_columns = k.pointer("to_rows", out, at), k.pointer("to_columns", out, total + at)
        with k.loop("m", 0, many, independent=True) as m:
            to_rows[m] = cast(out.type, i)
        with k.loop("m", 0, many, independent=True) as m:
            to_columns[m] = cast(out.type, first + cast(INDEX, m))
        k.assign(at, at + cast(INDEX, many))
    return k.source(group=1)


@lru_cache(None)
def compiled(engine: Engine, d: dtype, upper: bool, wide: bool) -> Launch:
    """Return the compiled kernel."""
    return engine.compile(source(d, upper, engine.traits.serial, wide))


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
