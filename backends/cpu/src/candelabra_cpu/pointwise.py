"""Pointwise kernels that differ from NumPy's functions in semantics."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from candelabra.errors import IntegerDivisionByZero

from candelabra_cpu.numpy_kernels import (
    asarray,
    binary_kernel,
    inplace_after_computing,
    inplace_kernel,
    ndarray,
    numpy_kernel,
    unary_kernel,
    wrap_scalars,
)
from candelabra_cpu.precision import in_float32

_raising_context: Final = contextvars.copy_context()
_raising_context.run(np.seterr, all="ignore")
_raising_context.run(np.seterr, divide="raise")


def _dtype(x: Any, y: Any) -> Any:
    return x.dtype if isinstance(x, ndarray) else y.dtype


def _integer_division(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that raises when an integer is divided by 0, where NumPy gives 0."""
    floating = binary_kernel(function)

    def divide(x: Any, y: Any) -> Any:
        if _dtype(x, y).kind not in "iu":
            return floating(x, y)
        try:
            return asarray(_raising_context.copy().run(function, *wrap_scalars(x, y)))
        except FloatingPointError:
            raise IntegerDivisionByZero("ZeroDivisionError: integer division or modulo by zero") from None

    return divide


def _trunc_divide(x: Any, y: Any) -> Any:
    if _dtype(x, y).kind not in "iu":
        return np.trunc(np.divide(x, y))
    quotient = np.floor_divide(x, y)
    return quotient + ((quotient < 0) & (quotient * y != x))


def pow(x: Any, y: Any) -> Any:
    """``x ** y``. Squares of floating dtypes are products; an integer to the power of a negative number raises."""
    d = _dtype(x, y)
    if d.kind in "iu":
        return _integer_power(x, y)
    if y.__class__ is not ndarray and d.char in "fd":
        if y == 2:
            return _square(x)
        if y == 1:
            return x.copy()
    return _power(x, y)


_square = unary_kernel(np.square)
_power = binary_kernel(np.power)


def _integer_power(x: Any, y: Any) -> Any:
    if isinstance(y, int) and y < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    x, y = wrap_scalars(x, y)
    negative = np.less(y, 0)
    if not np.any(negative):
        return _power(x, y)
    # 1 / x**|y|, truncated to an integer, is 0 except for the bases 1 and -1.
    size = np.power(x, np.where(negative, 0, y))
    unit = np.where(np.equal(x, 1), 1, np.where(np.equal(x, -1), 1 - 2 * (y & 1), 0))
    return asarray(np.where(negative, unit, size).astype(size.dtype))


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a shift kernel.

    A shift count outside the width of the dtype acts as the width, and must not wrap around.
    """
    kernel = binary_kernel(function)

    def shift(x: Any, y: Any) -> Any:
        if isinstance(y, int):
            width = x.dtype.itemsize * 8
            y = y if 0 <= y < width else width
        return kernel(x, y)

    return shift


_MAY_RAISE: dict[str, Any] = {
    "floor_divide": _integer_division(np.floor_divide),
    "remainder": _integer_division(np.remainder),
    "fmod": _integer_division(np.fmod),
    "trunc_divide": _integer_division(_trunc_divide),
    "pow": pow,
    "bitwise_left_shift": _shift(np.left_shift),
    "bitwise_right_shift": _shift(np.right_shift),
}


def _cast_scalar(ufunc: np.ufunc) -> Callable[..., Any]:
    """Wrap a ufunc that computes bfloat16 with a Python number in float32."""

    def function(x: Any, y: Any) -> Any:
        return ufunc(x, x.dtype.type(y) if y.__class__ is not ndarray and x.dtype.char == "E" else y)

    return function


def _clamp(ufunc: np.ufunc) -> Callable[..., Any]:
    """Wrap np.maximum or np.minimum. Of two zeros they return the second, in float16 the first; this the operand."""

    def function(x: Any, y: Any, out: Any = None) -> Any:
        char = x.dtype.char
        if char == "e":
            return ufunc(x, y, out=out)
        return ufunc(x.dtype.type(y) if y.__class__ is not ndarray and char == "E" else y, x, out=out)

    return function


def _copy_integers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rounding kernel that copies integers; a kernel must not return its argument."""
    return unary_kernel(lambda x: x.copy() if x.dtype.kind in "biu" else function(x))


def _copy_bools(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that copies bools, which NumPy rejects or converts to int8."""
    return unary_kernel(lambda x: x.copy() if x.dtype.kind == "b" else function(x))


def _round(x: Any, decimals: int) -> Any:
    if x.dtype.kind in "biu":
        if decimals:
            raise NotImplementedError(f"round() with decimals= expects a floating dtype, got {x.dtype}")
        return x.copy()
    if not decimals:
        return np.rint(x)
    scale = 10.0 ** abs(decimals)
    return np.rint(x * scale) / scale if decimals > 0 else np.rint(x / scale) * scale


def where(mask: Any, x: Any, y: Any) -> Any:
    """``x`` where ``mask`` is true, else ``y``."""
    if not isinstance(x, ndarray) and not isinstance(y, ndarray):
        return np.where(mask, x, y)
    return np.where(mask, *wrap_scalars(x, y)).astype(_dtype(x, y), copy=False)  # float64 for bfloat16 with a number


KERNELS: dict[str, Any] = {
    **_MAY_RAISE,
    "where": numpy_kernel(where),
    **{f"{name}_": inplace_after_computing(kernel) for name, kernel in _MAY_RAISE.items()},
    "floor": _copy_integers(np.floor), "ceil": _copy_integers(np.ceil), "trunc": _copy_integers(np.trunc),
    "round": numpy_kernel(in_float32(_round)),
    # NumPy accepts the output of these two by keyword only.
    "maximum_": inplace_kernel(lambda x, y, out: np.maximum(x, y, out=out)),
    "minimum_": inplace_kernel(lambda x, y, out: np.minimum(x, y, out=out)),
    "clamp_min": binary_kernel(_clamp(np.maximum)), "clamp_max": binary_kernel(_clamp(np.minimum)),
    "copysign": binary_kernel(_cast_scalar(np.copysign)),
    "clamp_min_": inplace_kernel(_clamp(np.maximum)), "clamp_max_": inplace_kernel(_clamp(np.minimum)),
    # A comparison is several times as fast as NumPy's logical function of floats.
    "logical_not": unary_kernel(lambda x: np.logical_not(x) if x.dtype.kind == "b" else np.equal(x, 0)),
    "conj_physical": _copy_bools(np.conjugate), "sign": _copy_bools(np.sign),
    # The in-place forms of the ufuncs reject bools.
    "conj_physical_": inplace_after_computing(_copy_bools(np.conjugate)),
    "sign_": inplace_after_computing(_copy_bools(np.sign)),
}  # fmt: skip
