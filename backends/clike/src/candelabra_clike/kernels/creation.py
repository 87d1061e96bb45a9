"""Arrays made from numbers: constants, ranges, unit matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.dtypes import COMPLEX, complex64, complex128, dtype, float32, float64, int64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.conversions import conversion
from candelabra_clike.engine import Engine
from candelabra_clike.kernels.copying import filling
from candelabra_clike.numbers import converter, number_types, number_word
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.types import CTYPES

Engines = Callable[[int], Engine]


def full(engine: Engine, shape: Shape, value: Any, d: dtype) -> StridedArray:
    """``value`` everywhere; integers wrap to the dtype's range."""
    return filling(d)(engine.empty(tuple(shape), d), value)


def eye(engine: Engine, n: int, m: int, d: dtype) -> StridedArray:
    """Ones on the diagonal, zeros elsewhere."""
    out = full(engine, (n, m), 0, d)
    filling(d)(out.restrided((min(n, m),), (m + 1,), 0), 1)
    return out


def computing(engine: Engine, whole: bool, complex_: bool) -> dtype:
    """In which dtype a range is computed before it is cast: the widest that the device has."""
    if whole:
        return int64
    if complex_:
        return complex128 if engine.traits.float64 else complex64
    return float64 if engine.traits.float64 else float32


@lru_cache(None)
def ranging(wide: dtype, d: dtype) -> Elementwise:
    """``start + i * step`` in one dtype, cast to another."""
    value = CTYPES[wide].value
    first, step = number_word(wide, 0), number_word(wide, len(number_types(wide)))
    if wide.category == COMPLEX:
        real, imaginary = (f"({value.replace('c64', 'f32').replace('c128', 'f64')})AT * {step}.{p}" for p in "xy")
        number = f"{first} + {value.upper()}({real}, {imaginary})"
    else:
        number = f"{first} + ({value})AT * {step}"
    text = conversion(wide, d).replace("{a}", f"({number})") if wide is not d else number
    return Elementwise(f"range_{wide.name}_{d.name}", text, (), d, number_types(wide) * 2)


def arange(engine: Engine, start: Any, step: Any, length: int, d: dtype) -> StridedArray:
    """``start + step * i`` in int64 or float64, then cast."""
    wide = computing(engine, isinstance(start, int) and isinstance(step, int), False)
    return _range(engine, wide, start, step, length, d)


def linspace(engine: Engine, start: Any, end: Any, steps: int, d: dtype) -> StridedArray:
    """``start + i * (end - start) / (steps - 1)`` in float64 or complex128, then cast; the last is ``end`` itself."""
    wide = computing(engine, False, complex in (type(start), type(end)))
    out = _range(engine, wide, start, (end - start) / (steps - 1) if steps > 1 else 0, steps, d)
    if steps > 1:
        _range(engine, wide, end, 0, 1, d, out.restrided((1,), (1,), steps - 1))
    return out


def _range(
    engine: Engine, wide: dtype, start: Any, step: Any, length: int, d: dtype, out: StridedArray | None = None
) -> StridedArray:
    convert = converter(wide)
    out = engine.empty((length,), d) if out is None else out
    return ranging(wide, d).general((), (*convert(start), *convert(step)), out)  # type: ignore[no-any-return]


def on(make: Callable[..., StridedArray]) -> Callable[[Engines], Callable[..., StridedArray]]:
    """The kernel whose last arguments are a dtype and a device's index, for any devices."""

    def factory(engines: Engines) -> Callable[..., StridedArray]:
        def kernel(*arguments: Any) -> StridedArray:
            return make(engines(arguments[-1]), *arguments[:-1])

        return kernel

    return factory


FACTORIES: dict[str, Any] = {"full": on(full), "arange": on(arange), "linspace": on(linspace), "eye": on(eye)}
