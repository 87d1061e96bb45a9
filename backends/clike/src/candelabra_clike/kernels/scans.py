"""Running sums, products, extremes and log-sum-exps along a dim."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from candelabra.backend import contiguous_strides
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype, float32, float64, int64

from candelabra_clike.array import StridedArray
from candelabra_clike.kernels.copying import clone
from candelabra_clike.kernels.reductions import (
    LARGEST,
    SMALLEST,
    ByDtype,
    as_pairs,
    cast_first,
    cast_of,
    castable,
    in_total,
)
from candelabra_clike.templates.reductions.scan import Scanning
from candelabra_clike.templates.reductions.scan_text import Scan
from candelabra_clike.types import CTYPES


def _each(source: dtype, target: dtype, state: str) -> str:
    """A value of one dtype as a state, cast to another on the way."""
    return f"(({state})({cast_of(source, target)}))"


@lru_cache(None)
def accumulating(operation: str, source: dtype, target: dtype) -> Scanning:
    """Sums or products of elements that are cast to ``target``: real, or complex products."""
    sign, first = ("+", "0") if operation == "cumsum" else ("*", "1")
    value = CTYPES[target].value
    name = f"{operation}_{source.name}_{target.name}"

    def scan(wide: bool, index: str) -> Scan:
        if target.category == COMPLEX:
            state = "c128" if wide or value == "c128" else "c64"
            lift = f"{state.upper()}({{x}}.x, {{x}}.y)" if state != value else "{x}"
            result = f"{value.upper()}({{a0}}.x, {{a0}}.y)" if state != value else "{a0}"
            join = f"{{a0}} = product_{state}({{a0}}, {{b0}});"
            return Scan(((state, f"{state.upper()}(1, 0)"),), (lift,), join, (result,))
        if target.category == FLOATING:
            state = "f32" if target.itemsize == 2 else in_total(target, wide)
            result = "{a0}" if state == value else f"({value}){{a0}}"
            # The sum of nothing but -0 is -0.
            start = "1" if sign == "*" else "-0.0f" if state == "f32" else "-0.0"
            join = f"{{a0}} = {{a0}} {sign} {{b0}};"
            return Scan(((state, start),), (_each(source, target, state),), join, (result,))
        if target.category == BOOL:
            sign_of = {"+": "|", "*": "&"}[sign]
            return Scan((("u32", first),), (_each(source, target, "u32"),), f"{{a0}} = {{a0}} {sign_of} {{b0}};")
        join = f"{{a0}} = {{a0}} {sign} {{b0}};"
        return Scan((("u64", first),), (_each(source, target, "u64"),), join, (f"({value}){{a0}}",))

    return Scanning(name, scan, CTYPES[source], [target])


def _accumulated(operation: str, x: StridedArray, dim: int, target: dtype) -> StridedArray:
    if not castable(x.dtype, target) and x.dtype is not target:
        x = cast_first(x, target)
    if target.category == COMPLEX and operation == "cumsum":
        if not x.shape:
            return clone(x)
        real = float32 if target.itemsize == 8 else float64
        out = accumulating(operation, real, real)(as_pairs(x), dim)[0]
        return out.restrided(x.shape, contiguous_strides(x.shape), 0, target)
    return accumulating(operation, x.dtype, target)(x, dim)[0]


def _accumulation(operation: str) -> Callable[..., StridedArray]:
    def kernel(x: StridedArray, dim: int, dtype: Any) -> StridedArray:
        natural = int64 if x.dtype.category < FLOATING else x.dtype
        return _accumulated(operation, x, dim, natural if dtype is None else dtype)

    return kernel


def running_extreme(largest: bool, d: dtype) -> Callable[..., tuple[StridedArray, StridedArray]] | None:
    """The kernel of ``cummax`` or ``cummin`` for a dtype: the last of equal ones; a NaN stays, the last is named."""
    if d.category == COMPLEX:
        return None
    value, sign = CTYPES[d].value, ">=" if largest else "<="
    first = f"({value})({(SMALLEST if largest else LARGEST)[value]})"
    later = f"({{b0}} {sign} {{a0}})" + (" | ({b0} != {b0})" if d.category == FLOATING else "")
    join = f"{{{{ const u32 later = {later}; {{a0}} = later ? {{b0}} : {{a0}}; {{a1}} = later ? {{b1}} : {{a1}}; }}}}"
    name = f"{'cummax' if largest else 'cummin'}_{d.name}"

    def scan(wide: bool, index: str) -> Scan:
        return Scan(((value, first), (index, "0")), ("{x}", "{i}"), join, ("{a0}", "(i64){a1}"), quick=False)

    scanning = Scanning(name, scan, CTYPES[d], [d, int64])

    def kernel(x: StridedArray, dim: int) -> tuple[StridedArray, StridedArray]:
        values, places = scanning(x, dim)
        return values, places

    return kernel


def logcumsumexp_for(d: dtype) -> Callable[..., StridedArray] | None:
    """The kernel of ``logcumsumexp`` for a real dtype: the largest so far, and the sum of what is divided by its power.

    Two such are put together by scaling the smaller one's sum; of two infinities none has to be scaled. A sum no wider
    than the result keeps what its roundings lost beside it (D. Knuth, The Art of Computer Programming, vol. 2, 4.2.2:
    the error of a sum is a number).
    """
    if d.category != FLOATING:
        return None
    value = CTYPES[d].value

    def scan(wide: bool, index: str) -> Scan:
        t = "f32" if d.itemsize == 2 else in_total(d, wide)
        first = SMALLEST[t]
        join = (
            f"{{{{ const u32 less = ({{a0}} < {{b0}}) | ({{b0}} != {{b0}});\n"
            f"const {t} low = less ? {{a0}} : {{b0}}, high = less ? {{b0}} : {{a0}};\n"
            f"const {t} scale = exp_{t}(low == high ? 0 : low - high);\n"
            f"const {t} of_a = less ? scale : 1, of_b = less ? 1 : scale;\n"
        )
        each, start = (f"({t}){{x}}", "1", "0"), ((t, first), (t, "0"), (t, "0"))
        if t != value:
            join += "{a1} = {a1} * of_a + {b1} * of_b; {a0} = high; }}"
            return Scan(
                start[:2], each[:2], join, (f"({value})({{a0}} + log_{t}({{a1}}))",), quick=False, contract=True
            )
        join += (
            f"const {t} x = {{a1}} * of_a, y = {{b1}} * of_b, s = x + y, z = s - x;\n"
            "{a2} = {a2} * of_a + ({b2} * of_b + ((x - (s - z)) + (y - z))); {a1} = s; {a0} = high; }}"
        )
        return Scan(start, each, join, (f"({value})({{a0}} + log_{t}({{a1}} + {{a2}}))",), quick=False)

    scanning = Scanning(f"logcumsumexp_{d.name}", scan, CTYPES[d], [d])
    return lambda x, dim: scanning(x, dim)[0]


KERNELS: dict[str, Any] = {
    "cumsum": _accumulation("cumsum"),
    "cumprod": _accumulation("cumprod"),
    "cummax": ByDtype(lambda d: running_extreme(True, d)),
    "cummin": ByDtype(lambda d: running_extreme(False, d)),
    "logcumsumexp": ByDtype(logcumsumexp_for),
}
