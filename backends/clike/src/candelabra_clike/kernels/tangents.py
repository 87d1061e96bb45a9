"""Reductions and scatters together with their derivatives along a tangent: each row is read once, for all passes of a
program.

In the programs, ``a`` is the tangent and ``b`` the input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import inf, prod
from typing import Any

from candelabra.dtypes import FLOATING, dtype

from candelabra_clike.array import Shape, StridedArray, extent
from candelabra_clike.conversions import converted
from candelabra_clike.engine import Engine
from candelabra_clike.kernels.normalization import mean_of_row, squared_distance
from candelabra_clike.kernels.reductions import DtypeSpecialized, accumulator_type, of_floating
from candelabra_clike.kernels.scattering import SCATTER, accumulator_dtype, identity, scatter_along
from candelabra_clike.kernels.softmax import row_kernel
from candelabra_clike.language import Value, all_declared, call, cast, select, sqrt, value_type
from candelabra_clike.layouts import WIDE, is_wide
from candelabra_clike.templates.elementwise.elementwise import MAX_PLANS, ElementwiseSchedule, Launches
from candelabra_clike.templates.elementwise.loops import LoopNest, operands
from candelabra_clike.templates.indexing.scatter import ScatterRule
from candelabra_clike.templates.reduction_dims import check_not_empty
from candelabra_clike.templates.reductions.scan import ScanKernel
from candelabra_clike.templates.reductions.scan_source import ScanOp
from candelabra_clike.templates.rows.program import MAX, SUM, RowOperation, RowProgram, RowReduction
from candelabra_clike.types import CTYPES


class ElementwiseSeveral:
    """``outs[k][i] = function(a[i], b[i], …)[k]`` for arrays of one shape, with the dtypes ``inputs`` and ``outputs``.

    Raises ``ExpressionError`` for a wrong function.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], inputs: Sequence[dtype], outputs: Sequence[dtype]
    ) -> None:
        values = all_declared(name, function, operands(inputs), [[value_type(d)] for d in outputs])
        self._launches = Launches(LoopNest(name, tuple(values), tuple(inputs), tuple(outputs), (), False))
        self._schedule = lru_cache(MAX_PLANS)(self._scheduled)

    def __call__(self, arrays: Sequence[StridedArray], outs: Sequence[StridedArray]) -> None:
        """Write the results to ``outs``, which have elements, none of them in an array or twice."""
        placed = (*outs, *arrays)
        first = outs[0]
        wide = is_wide(*placed)
        plan = self._schedule(first.engine, first.shape, tuple([array.strides for array in placed]), wide)
        if max([array.offset for array in placed]) > plan.max_offset:
            plan = self._schedule(first.engine, first.shape, tuple([array.strides for array in placed]), True)
        buffers, offsets = [array.buffer for array in placed], [array.offset for array in placed]
        plan.launch(plan.items, *buffers, *offsets, *plan.numbers)

    def _scheduled(self, engine: Engine, shape: Shape, rows: tuple[Shape, ...], wide: bool) -> ElementwiseSchedule:
        furthest = max([extent(shape, row) for row in rows])
        return self._launches.schedule(engine, shape, rows, False, wide or furthest >= WIDE, furthest)


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


def check_tangent(t: StridedArray, x: StridedArray) -> None:
    """Raise ``RuntimeError`` if a tangent has another shape than its tensor."""
    if t.shape != x.shape:
        raise RuntimeError(f"the tangent has the shape {tuple(t.shape)}, but its tensor has {tuple(x.shape)}")


def _reduced(
    program: RowProgram, t: StridedArray, x: StridedArray, dim: Shape | None, keepdim: bool, *numbers: float
) -> tuple[StridedArray, ...]:
    """Return the results of a program in the shape of a reduction."""
    check_tangent(t, x)
    return tuple(row_kernel(program, x.dtype).reduced([t, x], dim, keepdim, numbers))


def extremum_along(t: StridedArray, x: StridedArray, dim: Shape | None, largest: bool, keepdim: bool) -> Any:
    """The kernel of ``extremum_along``."""
    check_not_empty("amax" if largest else "amin", x.shape, dim or None)
    return _reduced(EXTREMA[largest], t, x, dim or None, keepdim)


def var_mean_along(t: StridedArray, x: StridedArray, dim: Shape | None, correction: float, keepdim: bool) -> Any:
    """The kernel of ``var_mean_along``."""
    count = prod(x.shape if dim is None else [x.shape[d] for d in dim])
    divisor = float(max(count - correction, 0))
    mean, variance, slope, mean_slope = _reduced(VARIANCE, t, x, dim, keepdim, divisor)
    return variance, mean, slope, mean_slope


def prod_along(t: StridedArray, x: StridedArray, dim: Shape | None, keepdim: bool) -> Any:
    """The kernel of ``prod_along``."""
    if not x.engine.traits.serial:
        return NotImplemented
    slope, product = _reduced(PRODUCT, t, x, dim, keepdim)
    return product, slope


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
        check_tangent(t, x)
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


def scatter_extreme_along(
    t: StridedArray, t_src: StridedArray | None, x: StridedArray, dim: int, index: StridedArray, src: StridedArray,
    reduce: str, include_self: bool,
) -> Any:  # fmt: skip
    """The kernel of ``scatter_extreme_along``."""
    check_tangent(t, x)
    if t_src is not None:
        check_tangent(t_src, src)
    d, wide = x.dtype, accumulator_dtype(x.dtype)
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


KERNELS: dict[str, Any] = {
    "cumprod_along": DtypeSpecialized(_cumulative_product_along),
    "extremum_along": of_floating(extremum_along),
    "var_mean_along": of_floating(var_mean_along),
    "norm_along": of_floating(partial(_reduced, NORM)),
    "logsumexp_along": of_floating(partial(_reduced, LOGSUMEXP)),
    "prod_along": of_floating(prod_along),
    "scatter_extreme_along": of_floating(scatter_extreme_along),
}
