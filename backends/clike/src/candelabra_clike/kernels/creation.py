"""Creation of arrays from numbers: constants, ranges, identity matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.dtypes import COMPLEX, complex64, complex128, dtype, float32, float64, int64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.conversions import converted
from candelabra_clike.engine import Engine
from candelabra_clike.kernels.copies import fill_function
from candelabra_clike.language import cast, pair, value_type
from candelabra_clike.scalars import scalar, scalar_converter, scalar_types
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.elementwise.loops import AT
from candelabra_clike.templates.indexing.triangles import triangle_indices

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
