"""Reductions and scatters together with their derivatives along a tangent: each row is read once, for all passes of a
program.

In the programs, ``a`` is the tangent and ``b`` the input.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf, prod
from typing import Any

from candelabra.backend import contiguous_strides, reduced_shape
from candelabra.dtypes import FLOATING, dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.conversions import converted
from candelabra_clike.kernels.reductions import DtypeSpecialized, accumulator_type
from candelabra_clike.kernels.scattering import SCATTER, accumulator_dtype, identity, scatter_along
from candelabra_clike.kernels.softmax import row_kernel
from candelabra_clike.kernels.variances import mean_of_row, squared_distance
from candelabra_clike.language import Value, call, cast, select, sqrt
from candelabra_clike.templates.elementwise.several import ElementwiseSeveral
from candelabra_clike.templates.indexing.scatter import ScatterRule
from candelabra_clike.templates.reduction_dims import check_not_empty
from candelabra_clike.templates.reductions.scan import ScanKernel
from candelabra_clike.templates.reductions.scan_source import ScanOp
from candelabra_clike.templates.rows.program import MAX, SUM, RowOperation, RowProgram, RowReduction
from candelabra_clike.types import CTYPES

LARGEST = RowOperation(lambda a, b: select((a >= b) | (a != a), a, b), -inf, False)
SMALLEST = RowOperation(lambda a, b: select((a <= b) | (a != a), a, b), inf, False)
"""The extrema. NaN propagates."""


def one(x: Value) -> Value:
    """Return 1, computed from a number that is not NaN: a choice of vectors needs a vector."""
    least = select(x < 1, 1, x)
    return select(least > 1, 1, least)


def _extremum(name: str, operation: RowOperation) -> RowProgram:
    """Return the program for the extremum, the number of ties, and the mean of their tangents."""
    return RowProgram(
        name, 2,
        (
            RowReduction(operation, lambda b: b, stored_result=True),
            RowReduction(SUM, lambda b, r0: select(b == r0, one(b), 0)),
            RowReduction(
                SUM, lambda a, b, r0: select(b == r0, a, 0), lambda total, r1: total / cast(total.type, r1),
                stored_result=True,
            ),
        ),
    )  # fmt: skip


EXTREMA = {True: _extremum("amax_along", LARGEST), False: _extremum("amin_along", SMALLEST)}
"""The programs of the largest and of the smallest elements."""


def distance_along(a: Value, b: Value, r0: Value) -> Value:
    """Return the product of a tangent and the distance of its element from the mean."""
    return (b - r0) * a


VARIANCE = RowProgram(
    "var_mean_along", 2,
    (
        RowReduction(SUM, lambda b: b, mean_of_row, stored_result=True),
        RowReduction(
            SUM, lambda b, r0: squared_distance(b, r0), lambda total, s0: total / cast(total.type, s0),
            stored_result=True,
        ),
        RowReduction(SUM, distance_along, lambda total, s0: 2 * total / cast(total.type, s0), stored_result=True),
        RowReduction(SUM, lambda a: a, mean_of_row, stored_result=True),
    ),
    numbers=1,
)  # fmt: skip
"""The mean, the variance, and their derivatives. ``s0`` is the divisor."""
NORM = RowProgram(
    "norm_along", 2,
    (
        RowReduction(SUM, lambda b: b * b, lambda total, type: sqrt(cast(type, total)), stored_result=True),
        RowReduction(
            SUM, lambda a, b: a * b, lambda total, r0: select(r0 == 0, 0, total / cast(total.type, r0)),
            stored_result=True,
        ),
    ),
)  # fmt: skip
LOGSUMEXP = RowProgram(
    "logsumexp_along", 2,
    (
        RowReduction(MAX, lambda b: b, lambda total: select(total - total == 0, total, 0)),
        RowReduction(
            SUM, lambda b, r0: call("exp", b - r0), lambda total, type, r0: call("log", cast(type, total)) + r0,
            stored_result=True,
        ),
        RowReduction(SUM, lambda a, b, r1: call("exp", b - r1) * a, stored_result=True),
    ),
)  # fmt: skip
"""An infinite maximum is not subtracted: exp(-inf) is 0, and exp(inf) is inf."""

PRODUCT = RowProgram(
    "prod_along", 2,
    (
        RowReduction(
            RowOperation(lambda a, b, x, y: a * y + x * b, 0, False, reads_next=True), lambda a: a, stored_result=True
        ),
        RowReduction(RowOperation(lambda a, b: a * b, 1, False), lambda b: b, stored_result=True),
    ),
)  # fmt: skip
"""The derivative, and the product: (x, a) (y, b) = (x y, x b + a y)."""


def _reduced(rows: list[StridedArray], shape: Shape) -> tuple[StridedArray, ...]:
    """Return results of rows in the shape of a reduction."""
    return tuple([row.restrided(shape, contiguous_strides(shape), 0) for row in rows])


def _extremum_along(d: dtype) -> Callable[..., Any] | None:
    if d.category != FLOATING:
        return None

    def kernel(t: StridedArray, x: StridedArray, dim: Shape | None, largest: bool, keepdim: bool) -> Any:
        check_not_empty("amax" if largest else "amin", x.shape, dim or None)
        if t.shape != x.shape:
            raise RuntimeError(f"the tangent has the shape {tuple(t.shape)}, but its tensor has {tuple(x.shape)}")
        dims = dim or tuple(range(len(x.shape)))
        rows = row_kernel(EXTREMA[largest], d)([t, x], x.shape, dims)
        return _reduced(rows, reduced_shape(x.shape, dims, keepdim))

    return kernel


def _variance_along(d: dtype) -> Callable[..., Any] | None:
    if d.category != FLOATING:
        return None

    def kernel(t: StridedArray, x: StridedArray, dim: Shape | None, correction: float, keepdim: bool) -> Any:
        if t.shape != x.shape:
            raise RuntimeError(f"the tangent has the shape {tuple(t.shape)}, but its tensor has {tuple(x.shape)}")
        dims = tuple(range(len(x.shape))) if dim is None else dim
        divisor = float(max(prod([x.shape[d] for d in dims]) - correction, 0))
        rows = row_kernel(VARIANCE, d)([t, x], x.shape, dims, (divisor,))
        mean, variance, slope, mean_slope = _reduced(rows, reduced_shape(x.shape, dims, keepdim))
        return variance, mean, slope, mean_slope

    return kernel


def _two_along(program: RowProgram) -> DtypeSpecialized:
    """Return the kernel of a program with a value and a slope for each row."""

    def for_dtype(d: dtype) -> Callable[..., Any] | None:
        if d.category != FLOATING:
            return None
        rows = row_kernel(program, d)

        def kernel(t: StridedArray, x: StridedArray, dim: Shape | None, keepdim: bool) -> Any:
            if t.shape != x.shape:
                raise RuntimeError(f"the tangent has the shape {tuple(t.shape)}, but its tensor has {tuple(x.shape)}")
            dims = tuple(range(len(x.shape))) if dim is None else dim
            return _reduced(rows([t, x], x.shape, dims), reduced_shape(x.shape, dims, keepdim))

        return kernel

    return DtypeSpecialized(for_dtype)


def _product_along(d: dtype) -> Callable[..., Any] | None:
    if d.category != FLOATING:
        return None
    rows = row_kernel(PRODUCT, d)

    def kernel(t: StridedArray, x: StridedArray, dim: Shape | None, keepdim: bool) -> Any:
        if not x.engine.traits.serial:
            return NotImplemented
        if t.shape != x.shape:
            raise RuntimeError(f"the tangent has the shape {tuple(t.shape)}, but its tensor has {tuple(x.shape)}")
        dims = tuple(range(len(x.shape))) if dim is None else dim
        slope, product = _reduced(rows([t, x], x.shape, dims), reduced_shape(x.shape, dims, keepdim))
        return product, slope

    return kernel


# -- cumulative products ----------------------------------------------------------------------------------------------
def _cumulative_product_along(d: dtype) -> Callable[..., Any] | None:
    if d.category != FLOATING:
        return None
    name, value = f"cumprod_along_{d.name}", CTYPES[d].value

    def dual_product(a0: Value, a1: Value, b0: Value, b1: Value) -> tuple[Value, Value]:
        return a0 * b0, a0 * b1 + a1 * b0  # (x, dx) (y, dy)

    def scan(wide: bool, index: str) -> ScanOp:
        state = "f32" if d.is_half else accumulator_type(d, wide)
        return ScanOp(
            name, (value, value), index, ((state, 1), (state, 0)), (value, value),
            lambda x, y: (cast(state, x), cast(state, y)), dual_product,
            lambda a0, a1: (cast(value, a0), cast(value, a1)), contract=True,
        )  # fmt: skip

    scanning = ScanKernel(name, scan, [CTYPES[d]] * 2, [d, d])

    def kernel(t: StridedArray, x: StridedArray, dim: int) -> Any:
        if t.shape != x.shape:
            raise RuntimeError(f"the tangent has the shape {tuple(t.shape)}, but its tensor has {tuple(x.shape)}")
        return tuple(scanning([x, t], dim))

    return kernel


# -- extremes of scattered numbers ------------------------------------------------------------------------------------
@lru_cache(None)
def extreme_rule(reduce: str, d: dtype, sources: int) -> ScatterRule:
    """Return the rule that keeps an extreme, the sum of the tangents of all numbers that equal it, and their count.

    The sources are the numbers, and their tangents if they have any. NaN propagates.
    """

    def rule(extreme: Value, total: Value, count: Value, number: Value, tangent: Any = 0) -> tuple[Value, ...]:
        beyond = extreme > number if reduce == "amax" else extreme < number
        kept, equal = (extreme != extreme) | beyond, extreme == number
        return (
            select(kept, extreme, number),
            select(kept, total, select(equal, total + tangent, tangent)),
            select(kept, count, select(equal, count + 1, 1)),
        )

    return ScatterRule.of(f"{reduce}_along_{d.name}_{sources}", accumulator_dtype(d), d, rule, 3, sources)


@lru_cache(None)
def extreme_reset(reduce: str, d: dtype) -> ScatterRule:
    """Return the rule that replaces an extreme by the identity element, and forgets its tangents."""
    wide = accumulator_dtype(d)
    return ScatterRule.of(f"forget_{reduce}_along_{d.name}", wide, d, lambda *_: (identity(reduce, wide), 0, 0), 3)


@lru_cache(None)
def _beginning(d: dtype, wide: dtype) -> ElementwiseSeveral:
    """Return the kernel of the first extreme, total and count, of a number and its tangent."""
    return ElementwiseSeveral(
        f"extreme_begins_{d.name}",
        lambda a, b: (converted(a, d, wide), converted(b, d, wide), 1),
        (d, d), (wide,) * 3,
    )  # fmt: skip


@lru_cache(None)
def _ending(wide: dtype, d: dtype) -> ElementwiseSeveral:
    """Return the kernel of the extreme and of the mean of the tangents, which is 0 for NaN."""
    return ElementwiseSeveral(
        f"extreme_ends_{d.name}",
        lambda a, b, c: (converted(a, wide, d), converted(select(a == a, b / c, 0), wide, d)),
        (wide,) * 3, (d, d),
    )  # fmt: skip


@lru_cache(None)
def _pairs(d: dtype) -> ElementwiseSeveral:
    """Return the kernel that copies numbers and their tangents."""
    return ElementwiseSeveral(f"pairs_{d.name}", lambda a, b: (a, b), (d, d), (d, d))


def _grouped(x: StridedArray, d: dtype, count: int) -> list[StridedArray]:
    """Return arrays of the shape of ``x``, whose elements are adjacent in memory."""
    group = x.engine.empty((*x.shape, count), d)
    return [group.restrided(x.shape, group.strides[:-1], k) for k in range(count)]


def _scatter_extreme_along(d: dtype) -> Callable[..., Any] | None:
    if d.category != FLOATING:
        return None
    wide = accumulator_dtype(d)

    def kernel(
        t: StridedArray,
        t_src: StridedArray | None,
        x: StridedArray,
        dim: int,
        index: StridedArray,
        src: StridedArray,
        reduce: str,
        include_self: bool,
    ) -> Any:
        if t.shape != x.shape or (t_src is not None and t_src.shape != src.shape):
            raise RuntimeError(f"the tangent has the shape {tuple(t.shape)}, but its tensor has {tuple(x.shape)}")
        out, slope = x.engine.empty(x.shape, d), x.engine.empty(x.shape, d)
        if not x.size:
            return out, slope
        state = _grouped(x, wide, 3)
        _beginning(d, wide)([x, t], state)
        sources = 1
        if t_src is not None and src.size:
            pairs, sources = _grouped(src, d, 2), 2
            _pairs(d)([src, t_src], pairs)
            src = pairs[0]
        rules = [extreme_rule(reduce, d, sources)]
        if not include_self:
            rules.insert(0, extreme_reset(reduce, d))
        scatter_along(state[0], dim, index, src, rules, SCATTER["scatter_extreme"])
        _ending(wide, d)(state, [out, slope])
        return out, slope

    return kernel


KERNELS: dict[str, Any] = {
    "cumprod_along": DtypeSpecialized(_cumulative_product_along),
    "extremum_along": DtypeSpecialized(_extremum_along),
    "var_mean_along": DtypeSpecialized(_variance_along),
    "norm_along": _two_along(NORM),
    "logsumexp_along": _two_along(LOGSUMEXP),
    "prod_along": DtypeSpecialized(_product_along),
    "scatter_extreme_along": DtypeSpecialized(_scatter_extreme_along),
}
