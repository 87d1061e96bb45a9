"""Variances and standard deviations over any dims: squared distances from the mean, however far that is from 0."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from candelabra.backend import contiguous_strides, reduced_shape
from candelabra.dtypes import FLOATING, dtype, float32

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.reductions import ByDtype, sum_of, summing
from candelabra_clike.kernels.softmax import rows_of
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.reductions.reduction import Reduction
from candelabra_clike.templates.rows.text import Pass, Program
from candelabra_clike.types import CTYPES

LONG = 1 << 15
"""Elements of a row that is worth being cut into parts where there are few rows."""
MEAN = Pass("{a}", "sum", "{t} / (W)count")
SQUARE = "({a} - {r0}) * ({a} - {r0})"
PROGRAMS = {
    "var": Program("var", 1, (MEAN, Pass(SQUARE, "sum", "{t} / (W)s0", written=True)), numbers=1),
    "std": Program("std", 1, (MEAN, Pass(SQUARE, "sum", "SQRT((T)({t} / (W)s0))", written=True)), numbers=1),
}
"""In one kernel; ``s0`` is what the sum is divided by."""


class Steps(NamedTuple):
    """The same in four kernels, each of which is cut into parts: values of half types are float32 in between."""

    mean: Reduction
    squares: Elementwise
    sum: Reduction
    result: Elementwise


@lru_cache(None)
def steps(operation: str, d: dtype) -> Steps:
    """The kernels of an operation over a dtype."""
    between = float32 if d.itemsize == 2 else d
    value = CTYPES[d].value
    mean = summing(d, result=f"({value})({{t}} / ({{T}})count)")
    result = "{a} / s0" if operation == "var" else f"SQRT_{value.upper()}({{a}} / s0)"
    return Steps(
        Reduction(f"mean_in_{between.name}_{d.name}", mean, CTYPES[d], between),
        Elementwise(f"squared_distance_{d.name}", "({a} - {b}) * ({a} - {b})", (d, between), between),
        sum_of(between, between),
        Elementwise(f"{operation}_of_sum_{d.name}", result, (between,), d, (value,)),
    )


def _spread(operation: str, d: dtype) -> Callable[..., StridedArray] | None:
    if d.category != FLOATING:
        return None

    def kernel(x: StridedArray, dim: Shape | None, correction: float, keepdim: bool) -> StridedArray:
        dims = tuple(range(len(x.shape))) if dim is None else dim
        shape = reduced_shape(x.shape, dims, keepdim)
        count = prod([x.shape[d] for d in dims])
        divisor = float(max(count - correction, 0))
        if count >= LONG and prod(shape) < x.engine.traits.compute_units:
            way = steps(operation, d)
            squares = way.squares(x, way.mean(x, dims, True))
            out: StridedArray = way.result(way.sum(squares, dims, keepdim), numbers=(divisor,))
            return out
        (out,) = rows_of(PROGRAMS[operation], d)([x], x.shape, dims, (divisor,))
        return out.restrided(shape, contiguous_strides(shape), 0)

    return kernel


KERNELS: dict[str, Any] = {
    "var": ByDtype(lambda d: _spread("var", d)),
    "std": ByDtype(lambda d: _spread("std", d)),
}
