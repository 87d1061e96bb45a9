"""Creation of arrays from numbers: constants, ranges, identity matrices, the indices of triangles."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.dtypes import COMPLEX, complex64, complex128, dtype, float32, float64, int64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.conversions import converted, scalar, scalar_converter, scalar_types
from candelabra_clike.engine import Engine, Launch, compiled
from candelabra_clike.kernels.copies import fill_function
from candelabra_clike.language import INDEX, Value, and_then, cast, constant, pair, select, value_type
from candelabra_clike.language.kernels import KernelBuilder, built, least
from candelabra_clike.layouts import WIDE
from candelabra_clike.source import Source
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.elementwise.loops import AT
from candelabra_clike.types import CTYPES

Engines = Callable[[int], Engine]


def full(engine: Engine, shape: Shape, value: Any, d: dtype) -> StridedArray:
    """An array filled with ``value``. Integers wrap around to the range of the dtype."""
    return fill_function(d)(engine.empty(tuple(shape), d), value)


def eye(engine: Engine, n: int, m: int, d: dtype) -> StridedArray:
    """Ones on the diagonal, zeros elsewhere."""
    out = full(engine, (n, m), 0, d)
    fill_function(d)(out.restrided((min(n, m),), (m + 1,), 0), 1)
    return out


def range_dtype(engine: Engine, integral: bool, complex_: bool) -> dtype:
    """Return the dtype in which a range is computed before it is cast: the widest one of the device."""
    if integral:
        return int64
    if complex_:
        return complex128 if engine.traits.float64 else complex64
    return float64 if engine.traits.float64 else float32


@lru_cache(None)
def range_kernel(wide: dtype, d: dtype) -> Elementwise:
    """Return the kernel for ``start + i * step`` in dtype ``wide``, cast to dtype ``d``."""
    first, step = scalar(wide, 0), scalar(wide, len(scalar_types(wide)))
    at = cast(value_type(wide.to_real()), AT)
    number = first + (pair(at * step.real, at * step.imag) if wide.category == COMPLEX else at * step)
    value = number if wide is d else converted(number, wide, d)
    return Elementwise(f"range_{wide.name}_{d.name}", value, (), d, scalar_types(wide) * 2)


def arange(engine: Engine, start: Any, step: Any, length: int, d: dtype) -> StridedArray:
    """``start + step * i``, computed in int64 or float64 and cast."""
    wide = range_dtype(engine, isinstance(start, int) and isinstance(step, int), False)
    return _range(engine, wide, start, step, length, d)


def linspace(engine: Engine, start: Any, end: Any, steps: int, d: dtype) -> StridedArray:
    """``start + i * (end - start) / (steps - 1)``, computed in float64 or complex128 and cast.

    Ends exactly at ``end``.
    """
    wide = range_dtype(engine, False, complex in (type(start), type(end)))
    out = _range(engine, wide, start, (end - start) / (steps - 1) if steps > 1 else 0, steps, d)
    if steps > 1:
        _range(engine, wide, end, 0, 1, d, out.restrided((1,), (1,), steps - 1))
    return out


def _range(
    engine: Engine, wide: dtype, start: Any, step: Any, length: int, d: dtype, out: StridedArray | None = None
) -> StridedArray:
    convert = scalar_converter(wide)
    out = engine.empty((length,), d) if out is None else out
    return range_kernel(wide, d).general((), (*convert(start), *convert(step)), out)  # type: ignore[no-any-return]


GRAIN = 1 << 15
"""Elements of the matrix that justify another work-item on serial devices."""


@built("triangle_indices")
def triangle_source(d: dtype, upper: bool, serial: bool, wide: bool) -> Source:
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
    return (
        compiled(engine, triangle_source, d, upper, serial, wide),
        items,
        total,
        (diagonal, row, col, total, per_item),
    )


def _sum_below(stop: int, limit: int) -> int:
    """Return the sum of ``min(max(i, 0), limit)`` over all i below ``stop``."""
    ramp = min(max(stop, 0), limit + 1)
    return ramp * (ramp - 1) // 2 + max(stop - limit - 1, 0) * limit


def for_devices(make: Callable[..., StridedArray]) -> Callable[[Engines], Callable[..., StridedArray]]:
    """Return the factory of a kernel whose last arguments are a dtype and a device index."""

    def factory(engines: Engines) -> Callable[..., StridedArray]:
        def kernel(*arguments: Any) -> StridedArray:
            engine = engines(arguments[-1])
            return NotImplemented if engine.lacks(arguments[-2]) else make(engine, *arguments[:-1])

        return kernel

    return factory


FACTORIES: dict[str, Any] = {
    "full": for_devices(full),
    "arange": for_devices(arange),
    "linspace": for_devices(linspace),
    "eye": for_devices(eye),
    "triangle_indices": for_devices(triangle_indices),
}
