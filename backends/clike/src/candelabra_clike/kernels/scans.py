"""Cumulative sums, products, extremes and log-sum-exps along a dim."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.backend import contiguous_strides
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype, float32, float64, int64

from candelabra_clike.array import StridedArray
from candelabra_clike.kernels.copies import clone
from candelabra_clike.kernels.reductions import (
    DtypeSpecialized,
    accumulator_type,
    cast_first,
    cast_of,
    castable,
    view_as_real_pairs,
)
from candelabra_clike.language import Variable, constant, highest, lowest, text
from candelabra_clike.templates.reductions.scan import ScanKernel
from candelabra_clike.templates.reductions.scan_source import ScanOp
from candelabra_clike.types import CTYPES


def _each(source: dtype, target: dtype, state: str) -> str:
    """Return the expression that converts a value to a state, with a cast to ``target``."""
    return f"(({state})({text(cast_of(source, target, Variable(CTYPES[source].value, '{x}')))}))"


@lru_cache(None)
def accumulation(operation: str, source: dtype, target: dtype) -> ScanKernel:
    """Return the scan for sums or products of elements cast to ``target``: a real dtype, or complex products."""
    sign, first = ("+", "0") if operation == "cumsum" else ("*", "1")
    value = CTYPES[target].value
    name = f"{operation}_{source.name}_{target.name}"

    def scan(wide: bool, index: str) -> ScanOp:
        if target.category == COMPLEX:
            state = "c128" if wide or value == "c128" else "c64"
            lift = f"{state.upper()}({{x}}.x, {{x}}.y)" if state != value else "{x}"
            result = f"{value.upper()}({{a0}}.x, {{a0}}.y)" if state != value else "{a0}"
            join = f"{{a0}} = product_{state}({{a0}}, {{b0}});"
            return ScanOp(((state, f"{state.upper()}(1, 0)"),), (lift,), join, (result,))
        if target.category == FLOATING:
            state = "f32" if target.is_half else accumulator_type(target, wide)
            result = "{a0}" if state == value else f"({value}){{a0}}"
            # A sum of -0 elements is -0.
            start = "1" if sign == "*" else "-0.0f" if state == "f32" else "-0.0"
            join = f"{{a0}} = {{a0}} {sign} {{b0}};"
            rounds = sign == "+" and state == value
            return ScanOp(((state, start),), (_each(source, target, state),), join, (result,), blocks=rounds)
        if target.category == BOOL:
            sign_of = {"+": "|", "*": "&"}[sign]
            return ScanOp((("u32", first),), (_each(source, target, "u32"),), f"{{a0}} = {{a0}} {sign_of} {{b0}};")
        join = f"{{a0}} = {{a0}} {sign} {{b0}};"
        return ScanOp((("u64", first),), (_each(source, target, "u64"),), join, (f"({value}){{a0}}",))

    return ScanKernel(name, scan, CTYPES[source], [target])


def _accumulate(operation: str, x: StridedArray, dim: int, target: dtype) -> StridedArray:
    if not castable(x.dtype, target) and x.dtype is not target:
        x = cast_first(x, target)
    if target.category == COMPLEX and operation == "cumsum":
        if not x.shape:
            return clone(x)
        real = float32 if target.itemsize == 8 else float64
        out = accumulation(operation, real, real)(view_as_real_pairs(x), dim)[0]
        return out.restrided(x.shape, contiguous_strides(x.shape), 0, target)
    return accumulation(operation, x.dtype, target)(x, dim)[0]


def _accumulation(operation: str) -> Callable[..., StridedArray]:
    def kernel(x: StridedArray, dim: int, dtype: Any) -> StridedArray:
        natural = int64 if x.dtype.category < FLOATING else x.dtype
        return _accumulate(operation, x, dim, natural if dtype is None else dtype)

    return kernel


def cumulative_extreme(largest: bool, d: dtype) -> Callable[..., tuple[StridedArray, StridedArray]] | None:
    """Return the kernel of ``cummax`` or ``cummin``. Of equal elements the last index is returned. NaN propagates."""
    if d.category == COMPLEX:
        return None
    value, sign = CTYPES[d].value, ">=" if largest else "<="
    first = text(constant(value, lowest(value) if largest else highest(value)))
    later = f"({{b0}} {sign} {{a0}})" + (" | ({b0} != {b0})" if d.category == FLOATING else "")
    join = f"{{{{ if (UNLIKELY({later})) {{{{ {{a0}} = {{b0}}; {{a1}} = {{b1}}; }}}} }}}}"
    name = f"{'cummax' if largest else 'cummin'}_{d.name}"

    def scan(wide: bool, index: str) -> ScanOp:
        return ScanOp(((value, first), (index, "0")), ("{x}", "{i}"), join, ("{a0}", "(i64){a1}"), unrolls=False)

    scanning = ScanKernel(name, scan, CTYPES[d], [d, int64])

    def kernel(x: StridedArray, dim: int) -> tuple[StridedArray, StridedArray]:
        values, indices = scanning(x, dim)
        return values, indices

    return kernel


def logcumsumexp_for(d: dtype) -> Callable[..., StridedArray] | None:
    """Return the kernel of ``logcumsumexp`` for a real dtype.

    A state is the maximum so far and the sum of exponentials relative to it. To combine two states, the sum with the
    smaller maximum is scaled, except for two equal infinities. If the sum is no wider than the result, its rounding
    errors are kept in a third variable (D. Knuth, The Art of Computer Programming, vol. 2, 4.2.2: the error of a sum is
    a number).
    """
    if d.category != FLOATING:
        return None
    value = CTYPES[d].value

    def scan(wide: bool, index: str) -> ScanOp:
        t = "f32" if d.is_half else accumulator_type(d, wide)
        first = text(constant(t, lowest(t)))
        join = (
            f"{{{{ const u32 less = ({{a0}} < {{b0}}) | ({{b0}} != {{b0}});\n"
            f"const {t} low = less ? {{a0}} : {{b0}}, high = less ? {{b0}} : {{a0}};\n"
            f"const {t} scale = exp_{t}(low == high ? 0 : low - high);\n"
            f"const {t} of_a = less ? scale : 1, of_b = less ? 1 : scale;\n"
        )
        each, start = (f"({t}){{x}}", "1", "0"), ((t, first), (t, "0"), (t, "0"))
        if t != value:
            join += "{a1} = {a1} * of_a + {b1} * of_b; {a0} = high; }}"
            return ScanOp(
                start[:2], each[:2], join, (f"({value})({{a0}} + log_{t}({{a1}}))",), unrolls=False, contract=True
            )
        join += (
            f"const {t} x = {{a1}} * of_a, y = {{b1}} * of_b, s = x + y, z = s - x;\n"
            "{a2} = {a2} * of_a + ({b2} * of_b + ((x - (s - z)) + (y - z))); {a1} = s; {a0} = high; }}"
        )
        return ScanOp(start, each, join, (f"({value})({{a0}} + log_{t}({{a1}} + {{a2}}))",), unrolls=False)

    scanning = ScanKernel(f"logcumsumexp_{d.name}", scan, CTYPES[d], [d])
    return lambda x, dim: scanning(x, dim)[0]


KERNELS: dict[str, Any] = {
    "cumsum": _accumulation("cumsum"),
    "cumprod": _accumulation("cumprod"),
    "cummax": DtypeSpecialized(lambda d: cumulative_extreme(True, d)),
    "cummin": DtypeSpecialized(lambda d: cumulative_extreme(False, d)),
    "logcumsumexp": DtypeSpecialized(logcumsumexp_for),
}
