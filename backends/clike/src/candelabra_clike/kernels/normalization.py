"""Normalisation to mean 0 and variance 1 over any dims, and the gradients of its input and of weight and bias."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

from candelabra.backend import reduced_shape
from candelabra.dtypes import FLOATING, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.kernels.reductions import DtypeSpecialized, sum_of
from candelabra_clike.kernels.softmax import row_kernel
from candelabra_clike.kernels.variances import mean_of_row, squared_distance
from candelabra_clike.language import Value, cast, sqrt
from candelabra_clike.layouts import broadcast, broadcast_strides
from candelabra_clike.templates.rows.program import SUM, RowProgram, RowReduction

MANY = 16
"""Sums that keep a processor busy; fewer are divided into segments."""
LONG = 1 << 15
"""Elements from which this is worthwhile."""
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


def _normalize_for(d: dtype) -> Callable[..., tuple[StridedArray, ...]] | None:
    if d.category != FLOATING:
        return None

    def normalize(x: StridedArray, weight: Any, bias: Any, dims: Shape, eps: float) -> tuple[StridedArray, ...]:
        operands = [t for t in (x, weight, bias) if t is not None]
        shape = broadcast([t.shape for t in operands]) if len(operands) > 1 else x.shape
        if shape != x.shape:
            raise RuntimeError(f"normalize: weight and bias are larger than {x.shape}")
        rows = row_kernel(NORMALIZE[weight is not None, bias is not None], d)
        return tuple(rows(operands, shape, dims, (eps,)))

    return normalize


def _normalize_backward_for(d: dtype) -> Callable[..., StridedArray] | None:
    if d.category != FLOATING:
        return None

    def backward(
        grad: StridedArray, x: StridedArray, mean: StridedArray, rstd: StridedArray, weight: Any, dims: Shape
    ) -> StridedArray:
        operands = [grad, x, mean, rstd] if weight is None else [grad, x, mean, rstd, weight]
        return row_kernel(BACKWARD[weight is not None], d)(operands, broadcast([t.shape for t in operands]), dims)[0]

    return backward


def _normalize_along_for(d: dtype) -> Callable[..., tuple[StridedArray, ...]] | None:
    if d.category != FLOATING:
        return None

    def along(
        tangent: StridedArray, x: StridedArray, mean: StridedArray, rstd: StridedArray, dims: Shape
    ) -> tuple[StridedArray, ...]:
        operands = [tangent, x, mean, rstd]
        return tuple(row_kernel(ALONG, d)(operands, broadcast([t.shape for t in operands]), dims))

    return along


def _normalize_jointly_for(d: dtype) -> Callable[..., Any] | None:
    if d.category != FLOATING:
        return None

    def jointly(tangent: StridedArray, x: StridedArray, weight: Any, bias: Any, dims: Shape, eps: float) -> Any:
        if not x.engine.traits.serial:
            return NotImplemented
        operands = [each for each in (tangent, x, weight, bias) if each is not None]
        if tangent.shape != x.shape or broadcast([each.shape for each in operands]) != x.shape:
            raise RuntimeError("the tangent has another shape, or weight or bias are larger than the input")
        rows = row_kernel(JOINTLY[weight is not None, bias is not None], d)
        values, along, mean, mean_along, rstd, rstd_along = rows(operands, x.shape, dims, (eps,))
        return values, mean, rstd, along, mean_along, rstd_along

    return jointly


def _parameters_for(d: dtype) -> Callable[..., Any] | None:
    if d.category != FLOATING:
        return None

    def backward(
        grad: StridedArray, x: StridedArray, mean: StridedArray, rstd: StridedArray, dims: Shape, keepdim: bool
    ) -> tuple[StridedArray, ...]:
        operands = [grad, x, mean, rstd]
        engine, shape = x.engine, broadcast((grad.shape, x.shape, mean.shape, rstd.shape))
        rows = row_kernel(PARAMETERS, d)
        divides = engine.traits.serial and d.itemsize >= 4  # the kernels of other devices divide rows themselves
        segments = _segments(shape, dims, engine.traits.compute_units) if divides else 1
        if segments == 1:
            found = rows(operands, shape, dims)
            if not keepdim:
                kept = reduced_shape(shape, dims, False)
                return found[0].reshaped(kept), found[1].reshaped(kept)
            return tuple(found)
        longest = max(dims, key=lambda dim: shape[dim])
        split = [_split(t, shape, longest, segments) for t in operands]
        each = rows(split, split[0].shape, tuple([dim + (dim >= longest) for dim in dims]))
        sums = [sum_of(d, d)(partial, (longest,), False) for partial in each]
        return tuple(sums) if keepdim else tuple([s.reshaped(reduced_shape(shape, dims, False)) for s in sums])

    return backward


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
    "normalize": DtypeSpecialized(_normalize_for),
    "normalize_along": DtypeSpecialized(_normalize_along_for),
    "normalize_backward": DtypeSpecialized(_normalize_backward_for),
    "normalize_jointly": DtypeSpecialized(_normalize_jointly_for),
    "normalize_parameters_backward": DtypeSpecialized(_parameters_for),
}
