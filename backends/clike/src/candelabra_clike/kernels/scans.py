"""Cumulative sums, products, extremes and log-sum-exps along a dim."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.backend import contiguous_strides
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype, int64

from candelabra_clike.array import StridedArray
from candelabra_clike.kernels.copies import cast as cast_first
from candelabra_clike.kernels.copies import clone, view_as_real
from candelabra_clike.kernels.reductions import (
    DtypeSpecialized,
    accumulator_type,
    cast_of,
    castable,
    natural_dtype,
)
from candelabra_clike.language import Value, call, cast, constant, highest, lowest, pair, part_type, rare, select
from candelabra_clike.templates.reductions.scan import ScanKernel
from candelabra_clike.templates.reductions.scan_source import ScanOp
from candelabra_clike.types import CTYPES


@lru_cache(None)
def accumulation(operation: str, source: dtype, target: dtype) -> ScanKernel:
    """Return the scan for sums or products of elements cast to ``target``: a real dtype, or complex products."""
    sums, value, element = operation == "cumsum", CTYPES[target].value, CTYPES[source].value
    name = f"{operation}_{source.name}_{target.name}"

    def operation_of(state: str) -> Callable[..., Value]:
        if state in ("c64", "c128"):
            return lambda a0, b0: call("product", a0, b0)
        if target.category == BOOL:
            return (lambda a0, b0: a0 | b0) if sums else (lambda a0, b0: a0 & b0)
        return (lambda a0, b0: a0 + b0) if sums else (lambda a0, b0: a0 * b0)

    def scan(wide: bool, index: str) -> ScanOp:
        first: float = 0 if sums else 1
        if target.category == COMPLEX:
            state = "c128" if wide or value == "c128" else "c64"
        elif target.category == FLOATING:
            state = "f32" if target.is_half else accumulator_type(target, wide)
            first = -0.0 if sums else 1  # a sum of -0 elements is -0
        else:
            state = "u32" if target.category == BOOL else "u64"
        return ScanOp(
            name, (element,), index, ((state, first),), (value,),
            lambda x: converted(state, x if target.category == COMPLEX else cast_of(source, target, x)),
            operation_of(state), lambda a0: converted(value, a0),
            blocks=target.category == FLOATING and sums and state == value,
        )  # fmt: skip

    return ScanKernel(name, scan, [CTYPES[source]], [target])


def converted(type: str, x: Value) -> Value:
    """Return a value in a type: both are real, or both are complex."""
    if part_type(type) == type:
        return cast(type, x)
    return x if x.type == type else pair(cast(part_type(type), x.real), cast(part_type(type), x.imag))


def _accumulate(operation: str, x: StridedArray, dim: int, target: dtype) -> StridedArray:
    if not castable(x.dtype, target) and x.dtype is not target:
        x = cast_first(x, target)
    if target.category == COMPLEX and operation == "cumsum":
        if not x.shape:
            return clone(x)
        real = target.to_real()
        out = accumulation(operation, real, real)([view_as_real(x)], dim)[0]
        return out.restrided(x.shape, contiguous_strides(x.shape), 0, target)
    return accumulation(operation, x.dtype, target)([x], dim)[0]


def _accumulation(operation: str) -> Callable[..., StridedArray]:
    def kernel(x: StridedArray, dim: int, dtype: Any) -> StridedArray:
        return _accumulate(operation, x, dim, dtype or natural_dtype(x.dtype))

    return kernel


def cumulative_extreme(largest: bool, d: dtype) -> Callable[..., tuple[StridedArray, StridedArray]] | None:
    """Return the kernel of ``cummax`` or ``cummin``. Of equal elements the last index is returned. NaN propagates."""
    if d.category == COMPLEX:
        return None
    value = CTYPES[d].value
    name = f"{'cummax' if largest else 'cummin'}_{d.name}"

    def later(a0: Value, a1: Value, b0: Value, b1: Value) -> tuple[Value, Value]:
        wins = b0 >= a0 if largest else b0 <= a0
        if d.category == FLOATING:
            wins = wins | (b0 != b0)
        return rare(wins, b0, a0), rare(wins, b1, a1)

    def scan(wide: bool, index: str) -> ScanOp:
        states = (value, lowest(value) if largest else highest(value)), (index, 0)
        return ScanOp(
            name, (value,), index, states, (value, "i64"), lambda x, i: (x, i), later,
            lambda a0, a1: (a0, cast("i64", a1)), unrolls=False,
        )  # fmt: skip

    scanning = ScanKernel(name, scan, [CTYPES[d]], [d, int64])

    def kernel(x: StridedArray, dim: int) -> tuple[StridedArray, StridedArray]:
        values, indices = scanning([x], dim)
        return values, indices

    return kernel


def logcumsumexp_for(d: dtype) -> Callable[..., StridedArray] | None:
    """Return the kernel of ``logcumsumexp`` for a real dtype.

    A state is the maximum so far and the sum of exponentials relative to it. If the sum is no wider than the result,
    its rounding errors are kept in a third variable.
    """
    if d.category != FLOATING:
        return None
    value, name = CTYPES[d].value, f"logcumsumexp_{d.name}"

    def scan(wide: bool, index: str) -> ScanOp:
        t = "f32" if d.is_half else accumulator_type(d, wide)
        states = (t, lowest(t)), (t, 1), (t, 0)
        if t != value:
            return ScanOp(
                name, (value,), index, states[:2], (value,), lambda x: (cast(t, x), constant(t, 1)), _join_exponentials,
                lambda a0, a1: cast(value, a0 + call("log", a1)), unrolls=False, contract=True,
            )  # fmt: skip
        return ScanOp(
            name, (value,), index, states, (value,), lambda x: (x, constant(t, 1), constant(t, 0)), _join_with_errors,
            lambda a0, a1, a2: a0 + call("log", a1 + a2), unrolls=False,
        )  # fmt: skip

    scanning = ScanKernel(name, scan, [CTYPES[d]], [d])
    return lambda x, dim: scanning([x], dim)[0]


def _scales(a0: Value, b0: Value) -> tuple[Value, Value, Value]:
    """Return the larger maximum, and the factors of the sums of two states.

    The sum with the smaller maximum is scaled, except for two equal infinities.
    """
    less = (a0 < b0) | (b0 != b0)
    low, high = select(less, a0, b0), select(less, b0, a0)
    scale = call("exp", select(low == high, 0, low - high))
    return high, select(less, scale, 1), select(less, 1, scale)


def _join_exponentials(a0: Value, a1: Value, b0: Value, b1: Value) -> tuple[Value, Value]:
    """Combine two states of a maximum and a sum."""
    high, of_a, of_b = _scales(a0, b0)
    return high, a1 * of_a + b1 * of_b


def _join_with_errors(a0: Value, a1: Value, a2: Value, b0: Value, b1: Value, b2: Value) -> tuple[Value, Value, Value]:
    """Combine two states of a maximum, a sum and its rounding errors.

    The error of a sum is a number: D. Knuth, The Art of Computer Programming, vol. 2, 4.2.2.
    """
    high, of_a, of_b = _scales(a0, b0)
    x, y = a1 * of_a, b1 * of_b
    total = x + y
    z = total - x
    return high, total, a2 * of_a + (b2 * of_b + ((x - (total - z)) + (y - z)))


KERNELS: dict[str, Any] = {
    "cumsum": _accumulation("cumsum"),
    "cumprod": _accumulation("cumprod"),
    "cummax": DtypeSpecialized(lambda d: cumulative_extreme(True, d)),
    "cummin": DtypeSpecialized(lambda d: cumulative_extreme(False, d)),
    "logcumsumexp": DtypeSpecialized(logcumsumexp_for),
}
