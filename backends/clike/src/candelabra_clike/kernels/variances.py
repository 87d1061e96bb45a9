"""Variances and standard deviations in two passes: the mean, then the mean of squared distances from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from candelabra.backend import contiguous_strides, reduced_shape
from candelabra.dtypes import FLOATING, dtype, float32

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.reductions import DtypeSpecialized, mean_of_total, sum_fold, sum_of
from candelabra_clike.kernels.softmax import row_kernel
from candelabra_clike.language import Value, cast, sqrt
from candelabra_clike.scalars import scalar
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.reductions.reduction import Reduction
from candelabra_clike.templates.rows.program import SUM, RowProgram, RowReduction
from candelabra_clike.types import CTYPES

LONG = 1 << 15
"""Rows of more elements are divided into parts on serial devices if there are few rows."""


def mean_of_row(total: Value, count: Value) -> Value:
    """Return the mean from the total of a row and its number of elements."""
    return total / cast(total.type, count)


def squared_distance(a: Value, r0: Value) -> Value:
    """Return the squared distance of an element from the mean."""
    return (a - r0) * (a - r0)


def _program(operation: str, result: Callable[..., Value]) -> RowProgram:
    passes = (
        RowReduction(SUM, lambda a: a, mean_of_row),
        RowReduction(SUM, squared_distance, result, stored_result=True),
    )
    return RowProgram(operation, 1, passes, numbers=1)


PROGRAMS = {
    "var": _program("var", lambda total, s0: total / cast(total.type, s0)),
    "std": _program("std", lambda total, type, s0: sqrt(cast(type, total / cast(total.type, s0)))),
}
"""The operations in one kernel; ``s0`` is the divisor."""


class VarianceKernels(NamedTuple):
    """The operations in four kernels, each divided into parts. Values of half types are float32 in between."""

    mean: Reduction
    squares: Elementwise
    sum: Reduction
    result: Elementwise


@lru_cache(None)
def variance_kernels(operation: str, d: dtype) -> VarianceKernels:
    """Return the kernels of an operation for a dtype."""
    between = float32 if d.is_half else d
    value = CTYPES[d].value
    mean = sum_fold(f"mean_in_{between.name}_{d.name}", d, result=mean_of_total(value))
    divisor = scalar(between, 0)
    return VarianceKernels(
        Reduction(f"mean_in_{between.name}_{d.name}", mean, CTYPES[d], between),
        Elementwise.of(f"squared_distance_{d.name}", lambda a, b: (a - b) * (a - b), (d, between), between),
        sum_of(between, between),
        Elementwise.of(
            f"{operation}_of_sum_{d.name}",
            lambda a: a / divisor if operation == "var" else sqrt(a / divisor),
            (between,),
            d,
            (value,),
        ),
    )


def _variance(operation: str, d: dtype) -> Callable[..., StridedArray] | None:
    if d.category != FLOATING:
        return None

    def kernel(x: StridedArray, dim: Shape | None, correction: float, keepdim: bool) -> StridedArray:
        dims = tuple(range(len(x.shape))) if dim is None else dim
        shape = reduced_shape(x.shape, dims, keepdim)
        count = prod([x.shape[d] for d in dims])
        divisor = float(max(count - correction, 0))
        traits = x.engine.traits
        if traits.serial and count >= LONG and prod(shape) < traits.compute_units:
            kernels_ = variance_kernels(operation, d)
            squares = kernels_.squares(x, kernels_.mean(x, dims, True))
            out: StridedArray = kernels_.result(kernels_.sum(squares, dims, keepdim), numbers=(divisor,))
            return out
        (out,) = row_kernel(PROGRAMS[operation], d)([x], x.shape, dims, (divisor,))
        return out.restrided(shape, contiguous_strides(shape), 0)

    return kernel


KERNELS: dict[str, Any] = {
    "var": DtypeSpecialized(lambda d: _variance("var", d)),
    "std": DtypeSpecialized(lambda d: _variance("std", d)),
}
