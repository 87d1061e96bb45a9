"""Fused overrides of composite operators, and functions of NumPy that the Array API standard lacks.

Half types are computed in float32 and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from candelabra_cpu.blocks import blockwise, large_in_blocks, large_in_blocks_inplace
from candelabra_cpu.complex_numbers import with_complex_kernel, with_complex_kernel_inplace
from candelabra_cpu.float32 import FUNCTIONS
from candelabra_cpu.half_precision import in_float32
from candelabra_cpu.numpy_kernels import asarray, binary_kernel, inplace_kernel, ndarray, numpy_kernel, unary_kernel
from candelabra_cpu.pointwise import where
from candelabra_cpu.vectorized import vectorized

Kernel = Callable[..., Any]


def _addcmul(x: Any, first: Any, second: Any, value: Any) -> Any:
    if x.dtype.kind in "iub":  # the number is converted to the dtype of the tensors first
        value = bool(value) if x.dtype.kind == "b" else int(value)
    product = np.multiply(first, second)
    return np.add(product if value == 1 else np.multiply(product, value), x)


def _addcdiv(x: Any, first: Any, second: Any, value: Any) -> Any:
    return np.add(np.divide(first if value == 1 else np.multiply(first, value), second), x)


def _lerp(x: Any, end: Any, weight: Any) -> Any:
    # Interpolate from the nearer end, so that a weight of 1 gives the end exactly.
    span = np.subtract(end, x)
    if isinstance(weight, ndarray):
        return where(np.abs(weight) < 0.5, x + weight * span, end - span * (1 - weight))
    return np.add(span * weight, x) if abs(weight) < 0.5 else np.subtract(end, span * (1 - weight))


def _atanh(x: Any) -> Any:
    # A logarithm in float64 is faster than NumPy's float32 function; the cancellation does not reach float32's digits.
    if x.dtype.char != "f":
        return np.arctanh(x)
    wide = x.astype(np.float64)
    return np.where(np.abs(x) < 1e-4, wide + wide**3 / 3, 0.5 * np.log((1 + wide) / (1 - wide)))


def _nan_to_num(x: Any, nan: float | None, posinf: float | None, neginf: float | None) -> Any:
    out = x.copy()
    if x.dtype.kind in "iub" or np.isfinite(x).all():
        return out
    if x.dtype.kind == "c":
        real = out.view(out.real.dtype)
        real[...] = _nan_to_num(real, nan, posinf, neginf)
        return out
    limits = np.finfo(x.dtype) if x.dtype.kind == "f" else _finfo(x.dtype)
    out[np.isnan(x)] = 0.0 if nan is None else nan
    out[x == np.inf] = limits.max if posinf is None else posinf
    out[x == -np.inf] = limits.min if neginf is None else neginf
    return out


def _finfo(d: Any) -> Any:
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo  # it has no annotations
    return finfo(d)


def _tan(x: Any) -> Any:
    # NumPy has SIMD code for the sine and cosine of float32, not for the tangent.
    return np.sin(x) / np.cos(x) if x.dtype.char == "f" else np.tan(x)


def _logaddexp_with(x: Any, y: Any, exp: Kernel, log1p: Kernel) -> Any:
    # Factor out the larger term. The difference of equal infinities is NaN, so they are returned as they are.
    if x.dtype.kind == "c":
        first = x.real >= y.real
        high, low = np.where(first, x, y), np.where(first, y, x)
        return np.where((high == low) & ~np.isfinite(high), high, high + log1p(exp(low - high)))
    high = np.maximum(x, y)
    gap = np.where(x == y, x.dtype.type(0), -np.abs(x - y))
    return high + log1p(exp(gap))


def _log1p(x: Any) -> Any:
    """``log1p`` of numbers in [0, 1]. float32 is computed in float64, which is faster than NumPy's function and as
    accurate, except for numbers below 1e-8, which are their own logarithm in float32.
    """
    return np.where(x < 1e-8, x, np.log(1 + x.astype(np.float64))) if x.dtype.char == "f" else np.log1p(x)


def _logaddexp(x: Any, y: Any) -> Any:
    return _logaddexp_with(x, y, np.exp, _log1p)


def _logaddexp2(x: Any, y: Any) -> Any:
    return _logaddexp_with(x, y, np.exp2, lambda e: _log1p(e) * (1 / math.log(2)))


def _nextafter(x: Any, y: Any) -> Any:
    """NumPy's function, except that equal numbers give ``y``: in float16 NumPy gives ``x``, which may be the other
    zero.
    """
    out = np.nextafter(x, y)
    return np.where(x == y, np.asarray(y, out.dtype), out) if out.dtype == np.float16 else out


TRANSCENDENTAL: dict[str, tuple[np.ufunc, Kernel]] = {
    "acos": (np.arccos, np.arccos), "acosh": (np.arccosh, np.arccosh), "asin": (np.arcsin, np.arcsin),
    "asinh": (np.arcsinh, np.arcsinh), "atan": (np.arctan, np.arctan), "atan2": (np.arctan2, np.arctan2),
    "atanh": (np.arctanh, _atanh), "cos": (np.cos, np.cos), "cosh": (np.cosh, np.cosh), "exp": (np.exp, np.exp),
    "expm1": (np.expm1, np.expm1), "hypot": (np.hypot, np.hypot), "log": (np.log, np.log),
    "log10": (np.log10, np.log10), "log1p": (np.log1p, np.log1p), "log2": (np.log2, np.log2), "sin": (np.sin, np.sin),
    "sinh": (np.sinh, np.sinh), "tan": (np.tan, _tan), "tanh": (np.tanh, np.tanh),
}  # fmt: skip
"""NumPy functions that take a nanosecond or more per element: the ufunc, and the function for large arrays."""


def _sigmoid(x: Any) -> Any:
    one = x.dtype.type(1)
    return np.divide(one, np.add(np.exp(np.negative(x)), one))


def _angle(x: Any) -> Any:
    if x.dtype.kind == "c":
        return KERNELS["atan2"](x.imag, x.real)
    return np.where(x == x, np.less(x, 0).astype(x.dtype) * x.dtype.type(math.pi), x)


def with_float32_passes(name: str, small: Kernel, into: bool = False) -> Kernel:
    """Return ``small``, extended by the passes of :mod:`candelabra_cpu.float32` for large arrays of float32 and half
    types.
    """
    return vectorized(small, FUNCTIONS[name], into) if name in FUNCTIONS else small


def _wrap_ufunc(ufunc: np.ufunc) -> Kernel:
    return unary_kernel(ufunc) if ufunc.nin == 1 else binary_kernel(ufunc)


def _sinc(x: Any) -> Any:
    # x - n is exact for the nearest integer n, and sin(pi x) = (-1)**n sin(pi (x - n)), which is 0 at integers.
    nearest = np.rint(x.real)
    half = nearest * 0.5
    sine = np.sin(np.multiply(x - nearest, np.pi))
    out = asarray(np.divide(np.where(half == np.rint(half), sine, -sine), np.multiply(x, np.pi)))
    out[x == 0] = 1
    return out


def _frexp(x: Any) -> tuple[Any, Any]:
    mantissa, exponent = np.frexp(x)
    return asarray(mantissa), asarray(exponent, np.int32)


KERNELS: dict[str, Any] = {
    "angle": with_float32_passes("angle", unary_kernel(_angle)),
    "addcmul": blockwise(_addcmul),
    "addcdiv": blockwise(_addcdiv),
    "lerp": blockwise(_lerp),
    "fmax": binary_kernel(np.fmax),
    "fmin": binary_kernel(np.fmin),
    "frexp": numpy_kernel(_frexp),
    "gcd": binary_kernel(np.gcd),
    "lcm": binary_kernel(np.lcm),
    "frac": with_float32_passes("frac", unary_kernel(lambda x: np.subtract(x, np.trunc(x)))),
    "logaddexp": with_float32_passes("logaddexp", blockwise(_logaddexp)),
    "logaddexp2": blockwise(_logaddexp2),
    "nextafter": vectorized(binary_kernel(_nextafter), FUNCTIONS["nextafter"], dtypes="f"),
    "rsqrt": with_float32_passes("rsqrt", unary_kernel(in_float32(lambda x: np.divide(x.dtype.type(1), np.sqrt(x))))),
    "sigmoid": with_float32_passes("sigmoid", unary_kernel(in_float32(_sigmoid))),
    "nan_to_num": numpy_kernel(_nan_to_num),
    "sinc": blockwise(_sinc),
    "signbit": unary_kernel(lambda x: np.signbit(x) if x.dtype.kind not in "iub" else x < x.dtype.type(0)),
    **{
        name: with_complex_kernel(name, with_float32_passes(name, large_in_blocks(_wrap_ufunc(ufunc), function)))
        for name, (ufunc, function) in TRANSCENDENTAL.items()
    },
    **{
        name + "_": with_complex_kernel_inplace(
            name, with_float32_passes(name, large_in_blocks_inplace(inplace_kernel(ufunc), function), True)
        )
        for name, (ufunc, function) in TRANSCENDENTAL.items()
    },
}
