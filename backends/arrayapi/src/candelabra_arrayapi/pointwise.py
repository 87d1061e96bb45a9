"""Pointwise kernels: the standard's functions under PyTorch's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from candelabra_arrayapi.placement import same_device

RENAMED = {
    "neg": "negative", "bitwise_not": "bitwise_invert", "sub": "subtract", "mul": "multiply", "div": "divide",
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip
"""The standard's name of each operator that PyTorch names differently."""
SAME_NAME = (
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_left_shift",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "cos", "cosh", "exp", "expm1", "floor_divide", "isfinite",
    "isinf", "isnan", "log", "log10", "log1p", "log2", "logical_and", "logical_not", "logical_or", "logical_xor",
    "maximum", "minimum", "remainder", "sin", "sinh", "sqrt", "tan", "tanh", "where",
)  # fmt: skip
ROUNDING = ("floor", "ceil", "trunc")


def kernels(xp: Any) -> dict[str, Callable[..., Any]]:
    """Return the pointwise kernels over the namespace ``xp``."""
    table: dict[str, Callable[..., Any]] = {name: getattr(xp, name) for name in SAME_NAME}
    table |= {name: getattr(xp, standard) for name, standard in RENAMED.items()}
    table |= {name: _rounding(xp, getattr(xp, name)) for name in ROUNDING}

    def copy(x: Any) -> Any:
        return xp.asarray(x, copy=True)

    def exp2(x: Any) -> Any:
        return xp.pow(xp.asarray(2, dtype=x.dtype, **same_device(x)), x)

    def round(x: Any, decimals: int) -> Any:
        if decimals == 0:
            return xp.round(x) if xp.isdtype(x.dtype, "real floating") else copy(x)
        if not xp.isdtype(x.dtype, "real floating"):
            raise NotImplementedError(f"round() with decimals= expects a floating dtype, got {x.dtype}")
        scale = 10.0 ** abs(decimals)
        return xp.round(x * scale) / scale if decimals > 0 else xp.round(x / scale) * scale

    def pow(x: Any, y: Any) -> Any:
        if not hasattr(y, "dtype") or not xp.isdtype(y.dtype, "integral"):
            return xp.pow(x, y)
        # 1 / x**|y|, truncated to an integer, is 0 except for the bases 1 and -1, for which the parity of y decides.
        power = xp.pow(x, xp.where(y < 0, y & 1, y))
        return xp.where((y < 0) & (abs(x) != 1), 0 * power, power)

    def trunc_divide(x: Any, y: Any) -> Any:
        quotient = xp.floor_divide(x, y)
        if xp.isdtype(quotient.dtype, "real floating"):
            return xp.trunc(x / y)
        remainder = x - quotient * y
        return xp.where((remainder != 0) & (quotient < 0), quotient + 1, quotient)

    def fmod(x: Any, y: Any) -> Any:
        remainder = xp.remainder(x, y)
        if xp.isdtype(remainder.dtype, "real floating"):
            # For positive operands remainder() equals fmod() and is exact; subtracting y afterwards would round.
            return xp.copysign(xp.remainder(abs(x), abs(y)), x)
        wrong_sign = (remainder != 0) & ((remainder < 0) != (x + 0 * remainder < 0))
        return xp.where(wrong_sign, remainder - y, remainder)

    def conj_physical(x: Any) -> Any:
        return xp.conj(x) if xp.isdtype(x.dtype, "complex floating") else copy(x)

    def sign(x: Any) -> Any:
        return copy(x) if xp.isdtype(x.dtype, "bool") else xp.sign(x)

    return table | {
        "exp2": exp2, "pow": pow, "round": round, "trunc_divide": trunc_divide, "fmod": fmod, "sign": sign,
        "conj_physical": conj_physical,
    }  # fmt: skip


def _rounding(xp: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    # The standard allows floor(), ceil() and trunc() to return an integer argument itself; a kernel must not alias it.
    def rounded(x: Any) -> Any:
        return function(x) if xp.isdtype(x.dtype, "real floating") else x + 0

    return rounded
