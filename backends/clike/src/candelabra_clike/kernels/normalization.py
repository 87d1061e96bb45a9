"""Variances in two passes: the mean, and the mean of squared distances from it. Normalisation to mean 0 and variance 1
over any dims, and the gradients of its input and of weight and bias.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod
from typing import Any, NamedTuple

from candelabra.backend import reduced_shape
from candelabra.dtypes import dtype, float32

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.conversions import scalar
from candelabra_clike.kernels.reductions import mean_of_total, of_floating, sum_fold, sum_of
from candelabra_clike.kernels.softmax import row_kernel
from candelabra_clike.language import Value, cast, sqrt
from candelabra_clike.layouts import broadcast, broadcast_strides
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


def _variance(operation: str, x: StridedArray, dim: Shape | None, correction: float, keepdim: bool) -> StridedArray:
    dims = tuple(range(len(x.shape))) if dim is None else dim
    count = prod([x.shape[d] for d in dims])
    divisor = float(max(count - correction, 0))
    traits = x.engine.traits
    if traits.serial and count >= LONG and prod(reduced_shape(x.shape, dims, keepdim)) < traits.compute_units:
        kernels = variance_kernels(operation, x.dtype)
        squares = kernels.squares(x, kernels.mean(x, dims, True))
        out: StridedArray = kernels.result(kernels.sum(squares, dims, keepdim), numbers=(divisor,))
        return out
    return row_kernel(PROGRAMS[operation], x.dtype).reduced([x], dims, keepdim, (divisor,))[0]


MANY = 16
"""Sums that keep a processor busy; fewer, of :data:`LONG` elements, are divided into segments."""
MEAN = RowReduction(SUM, lambda a: a, mean_of_row, stored_result=True)
RSTD = RowReduction(
    SUM, squared_distance, lambda total, count, type, s0: 1 / sqrt(cast(type, mean_of_row(total, count)) + s0),
    stored_result=True,
)  # fmt: skip
NORMALIZE = {
    (False, False): RowProgram("normalize", 1, (MEAN, RSTD), lambda a, r0, r1: (a - r0) * r1, 1),
    (True, False): RowProgram("normalize_w", 2, (MEAN, RSTD), lambda a, b, r0, r1: ((a - r0) * r1) * b, 1),
    (False, True): RowProgram("normalize_b", 2, (MEAN, RSTD), lambda a, b, r0, r1: (a - r0) * r1 + b, 1),
    (True, True): RowProgram("normalize_wb", 3, (MEAN, RSTD), lambda a, b, c, r0, r1: ((a - r0) * r1) * b + c, 1),
}
"""The programs by whether there are a weight and a bias."""


def squared_distance_of_input(b: Value, r0: Value) -> Value:
    """Return the squared distance of input b from its mean."""
    return squared_distance(b, r0)


def normalized(b: Value, c: Value, d: Value) -> Value:
    """Return the normalized input from input b, mean c and rstd d."""
    return (b - c) * d


# For gradient h of the normalized input z: (h - mean(h) - z * mean(h z)) * d.
BACKWARD = {
    False: RowProgram(
        "normalize_backward", 4,
        (
            RowReduction(SUM, lambda a: a, mean_of_row),
            RowReduction(SUM, lambda a, b, c, d: a * normalized(b, c, d), mean_of_row),
        ),
        lambda a, b, c, d, r0, r1: (a - r0 - normalized(b, c, d) * r1) * d,
        contract=False,
    ),
    True: RowProgram(
        "normalize_backward_w", 5,
        (
            RowReduction(SUM, lambda a, e: a * e, mean_of_row),
            RowReduction(SUM, lambda a, b, c, d, e: (a * e) * normalized(b, c, d), mean_of_row),
        ),
        lambda a, b, c, d, e, r0, r1: (a * e - r0 - normalized(b, c, d) * r1) * d,
        contract=False,
    ),
}  # fmt: skip
"""The programs for gradient a, input b, mean c, rstd d and weight e, by whether there is a weight."""
ALONG = RowProgram(
    "normalize_along", 4,
    (
        RowReduction(SUM, lambda a: a, mean_of_row, stored_result=True),
        RowReduction(SUM, lambda a, b, c, d: a * normalized(b, c, d), mean_of_row, stored_result=True),
    ),
    lambda a, b, c, d, r0, r1: (a - r0 - normalized(b, c, d) * r1) * d,
    contract=False,
)  # fmt: skip
"""The program for tangent a, input b, mean c and rstd d: the Jacobian of the normalized input is symmetric."""
JOINTLY_PASSES = (
    MEAN._replace(each=lambda b: b),
    MEAN,
    RSTD._replace(each=squared_distance_of_input),
    RowReduction(
        SUM, lambda a, b, r0: a * (b - r0),
        lambda total, count, type, r2: -(cast(type, mean_of_row(total, count)) * r2 * r2 * r2), stored_result=True,
    ),
)  # fmt: skip
"""The means of input b and tangent a, the factor of the input, and its derivative."""


def slope(a: Value, b: Value, r0: Value, r1: Value, r2: Value, r3: Value) -> Value:
    """Return the derivative of the normalized input, by the product rule."""
    return (a - r1) * r2 + (b - r0) * r3


def scaled_slope(a: Value, b: Value, c: Value, r0: Value, r1: Value, r2: Value, r3: Value) -> Value:
    """Return the derivative with a weight."""
    return slope(a, b, r0, r1, r2, r3) * c


JOINTLY = {
    (weight, bias): RowProgram(
        f"normalize_jointly{'_w' * weight}{'_b' * bias}", 2 + weight + bias, JOINTLY_PASSES, values, 1,
        second=scaled_slope if weight else slope,
    )
    for (weight, bias), values in (
        ((False, False), lambda b, r0, r2: (b - r0) * r2),
        ((True, False), lambda b, c, r0, r2: ((b - r0) * r2) * c),
        ((False, True), lambda b, c, r0, r2: (b - r0) * r2 + c),
        ((True, True), lambda b, c, d, r0, r2: ((b - r0) * r2) * c + d),
    )
}  # fmt: skip
"""The programs for the values and their derivatives, by whether there are a weight and a bias."""
PARAMETERS = RowProgram(
    "normalize_parameters", 4,
    (
        RowReduction(SUM, lambda a, b, c, d: a * normalized(b, c, d), stored_result=True),
        RowReduction(SUM, lambda a: a, stored_result=True),
    ),
)  # fmt: skip
"""The gradients of weight and bias for gradient a, input b, mean c and rstd d, in one pass."""


def normalize(x: StridedArray, weight: Any, bias: Any, dims: Shape, eps: float) -> tuple[StridedArray, ...]:
    """The kernel of ``normalize``."""
    operands = [t for t in (x, weight, bias) if t is not None]
    shape = broadcast([t.shape for t in operands]) if len(operands) > 1 else x.shape
    if shape != x.shape:
        raise RuntimeError(f"normalize: weight and bias are larger than {x.shape}")
    rows = row_kernel(NORMALIZE[weight is not None, bias is not None], x.dtype)
    return tuple(rows(operands, shape, dims, (eps,)))


def _broadcast(program: RowProgram, operands: list[StridedArray], dims: Shape) -> list[StridedArray]:
    """Run a program over operands that broadcast to one shape."""
    return row_kernel(program, operands[0].dtype)(operands, broadcast([t.shape for t in operands]), dims)


def normalize_backward(
    grad: StridedArray, x: StridedArray, mean: StridedArray, rstd: StridedArray, weight: Any, dims: Shape
) -> StridedArray:
    """The kernel of ``normalize_backward``."""
    operands = [grad, x, mean, rstd] if weight is None else [grad, x, mean, rstd, weight]
    return _broadcast(BACKWARD[weight is not None], operands, dims)[0]


def normalize_along(
    tangent: StridedArray, x: StridedArray, mean: StridedArray, rstd: StridedArray, dims: Shape
) -> tuple[StridedArray, ...]:
    """The kernel of ``normalize_along``."""
    return tuple(_broadcast(ALONG, [tangent, x, mean, rstd], dims))


def normalize_jointly(tangent: StridedArray, x: StridedArray, weight: Any, bias: Any, dims: Shape, eps: float) -> Any:
    """The kernel of ``normalize_jointly``."""
    if not x.engine.traits.serial:
        return NotImplemented
    operands = [each for each in (tangent, x, weight, bias) if each is not None]
    if tangent.shape != x.shape or broadcast([each.shape for each in operands]) != x.shape:
        raise RuntimeError("the tangent has another shape, or weight or bias are larger than the input")
    rows = row_kernel(JOINTLY[weight is not None, bias is not None], x.dtype)
    values, along, mean, mean_along, rstd, rstd_along = rows(operands, x.shape, dims, (eps,))
    return values, mean, rstd, along, mean_along, rstd_along


def normalize_parameters_backward(
    grad: StridedArray, x: StridedArray, mean: StridedArray, rstd: StridedArray, dims: Shape, keepdim: bool
) -> tuple[StridedArray, ...]:
    """The kernel of ``normalize_parameters_backward``."""
    operands = [grad, x, mean, rstd]
    engine, d, shape = x.engine, x.dtype, broadcast((grad.shape, x.shape, mean.shape, rstd.shape))
    rows = row_kernel(PARAMETERS, d)
    divides = engine.traits.serial and d.itemsize >= 4  # the kernels of other devices divide rows themselves
    segments = _segments(shape, dims, engine.traits.compute_units) if divides else 1
    if segments == 1:
        found = rows(operands, shape, dims)
    else:
        longest = max(dims, key=lambda dim: shape[dim])
        split = [_split(t, shape, longest, segments) for t in operands]
        each = rows(split, split[0].shape, tuple([dim + (dim >= longest) for dim in dims]))
        found = [sum_of(d, d)(partial, (longest,), False) for partial in each]
    return tuple(found) if keepdim else tuple([out.reshaped(reduced_shape(shape, dims, False)) for out in found])


@lru_cache(1024)
def _segments(shape: Shape, dims: Shape, units: int) -> int:
    """Return the number of segments of the longest of ``dims`` that busy all processors: a divisor of its size."""
    outputs = prod([size for dim, size in enumerate(shape) if dim not in dims])
    if not outputs or not dims or outputs >= MANY * units or prod(shape) < LONG:
        return 1
    longest = max([shape[dim] for dim in dims])
    wanted = -(-2 * MANY * units // outputs)
    return next(count for count in range(min(wanted, longest), 0, -1) if longest % count == 0)


def _split(x: StridedArray, shape: Shape, dim: int, segments: int) -> StridedArray:
    """Return an array that is broadcast to ``shape`` and has ``dim`` divided into two."""
    strides, size = broadcast_strides(x, shape), shape[dim] // segments
    return x.restrided(
        (*shape[:dim], segments, size, *shape[dim + 1 :]),
        (*strides[:dim], strides[dim] * size, strides[dim], *strides[dim + 1 :]),
        x.offset,
    )


KERNELS: dict[str, Any] = {
    **{name: of_floating(partial(_variance, name)) for name in ("var", "std")},
    **{f.__name__: of_floating(f) for f in (normalize, normalize_along, normalize_backward, normalize_jointly)},
    "normalize_parameters_backward": of_floating(normalize_parameters_backward),
}
