"""Fused overrides of composite operators, and functions of NumPy that the Array API standard lacks.

NumPy's functions of float32 run other code on other processors, with errors of up to 4 units in the last place. So most
functions compute float32 in float64. Those that small networks call most often (``exp``, ``log``, ``sin``, ``cos``,
``tanh``) are NumPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from candelabra.dtypes import dtype, float64

from candelabra_cpu.numpy_kernels import (
    KernelPerDtype,
    asarray,
    binary_kernel,
    inplace_after_computing,
    inplace_kernel,
    ndarray,
    numpy_kernel,
    unary_kernel,
)
from candelabra_cpu.precision import elementwise_in_float64, in_float32, in_float64

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
        return np.where(np.abs(weight) < 0.5, x + weight * span, end - span * (1 - weight))
    return np.add(span * weight, x) if abs(weight) < 0.5 else np.subtract(end, span * (1 - weight))


def _nan_to_num(x: Any, nan: float | None, posinf: float | None, neginf: float | None) -> Any:
    out = x.copy()
    if x.dtype.kind in "iub":
        return out
    if x.dtype.kind == "c":
        out.real, out.imag = (_nan_to_num(part, nan, posinf, neginf) for part in (x.real, x.imag))
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


def _logaddexp(x: Any, y: Any) -> Any:
    # Factor out the larger term. The difference of equal infinities is NaN, so they are returned as they are.
    first = x.real >= y.real
    high, low = np.where(first, x, y), np.where(first, y, x)
    return np.where((high == low) & np.isinf(high), high, high + np.log1p(np.exp(low - high)))


def _logaddexp2(x: Any, y: Any) -> Any:
    return np.logaddexp2(x, y) if x.dtype.kind != "c" else _logaddexp(x * math.log(2), y * math.log(2)) / math.log(2)


def _nextafter(x: Any, y: Any) -> Any:
    """NumPy's function, except that equal numbers give ``y``: in float16 NumPy gives ``x``, which may be the other
    zero.
    """
    out = np.nextafter(x, y)
    return np.where(x == y, np.asarray(y, out.dtype), out) if out.dtype == np.float16 else out


def _sigmoid(x: Any) -> Any:
    out = asarray(np.exp(-x))
    out += 1
    return np.reciprocal(out, out)


def _angle(x: Any) -> Any:
    return np.arctan2(x.imag, x.real) if x.dtype.kind == "c" else np.where(np.isnan(x), x, np.pi * (x < 0))


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


# -- complex functions for which NumPy returns wrong special values, or loses digits near 0 ----------------------------
def _complex_expm1(z: Any) -> Any:
    # exp(x) cos(y) - 1 = expm1(x) cos(y) - 2 sin²(y/2) without cancellation. exp() is right for infinities and NaN.
    x, y = z.real, z.imag
    out = np.empty_like(z)
    real, half_sine = np.expm1(x), np.sin(0.5 * y)
    versine = 2 * half_sine * half_sine  # 1 - cos(y)
    out.real = real - real * versine - versine + 0.0  # adding 0.0 turns -0 into 0, the value of exp(-0) - 1
    out.imag = np.exp(x) * np.sin(y)
    special = ~np.isfinite(out)
    power = np.exp(z[special])
    power.real -= 1
    out[special] = power
    return out


def _complex_tanh(z: Any) -> Any:
    # The Array API standard defines tanh(±inf + bi) as ±1 with a zero that has the sign of b; C uses that of sin(2b).
    out = asarray(np.tanh(z))
    infinite = np.isinf(z.real) & np.isfinite(z.imag)
    out.imag = np.where(infinite, np.copysign(0.0, z.imag), out.imag)
    return out


COMPLEX: dict[str, Kernel] = {"expm1": _complex_expm1, "tanh": _complex_tanh}
WIDE: dict[str, np.ufunc] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "cosh": np.cosh, "exp2": np.exp2, "expm1": np.expm1, "log1p": np.log1p,
    "sinh": np.sinh, "tan": np.tan,
}  # fmt: skip
"""Functions of NumPy that compute float32 and half types in float64."""


def _rounded_once(ufunc: np.ufunc) -> Kernel:
    """Return a function that computes real narrow dtypes in float64."""
    return lambda x: ufunc(x, dtype=np.float64).astype(x.dtype)


def _function(name: str, ufunc: np.ufunc, inplace: bool) -> Kernel:
    """Return the kernel of a ufunc, or of its in-place form."""
    new = unary_kernel(ufunc) if ufunc.nin == 1 else binary_kernel(ufunc)
    narrow = new
    if name in WIDE:
        narrow = unary_kernel(_rounded_once(ufunc)) if ufunc.nin == 1 else binary_kernel(in_float64(ufunc))
    of_complex = numpy_kernel(in_float64(COMPLEX.get(name, ufunc)))

    def for_dtype(d: dtype) -> Kernel:
        kernel = of_complex if d.is_complex else new if d is float64 else narrow
        if not inplace:
            return kernel
        return inplace_kernel(ufunc) if kernel is new else inplace_after_computing(kernel)

    return KernelPerDtype(for_dtype)


KERNELS: dict[str, Any] = {
    **{name: _function(name, ufunc, False) for name, ufunc in (*WIDE.items(), ("tanh", np.tanh))},
    **{name + "_": _function(name, ufunc, True) for name, ufunc in (*WIDE.items(), ("tanh", np.tanh))},
    "angle": numpy_kernel(in_float64(_angle)),  # of a complex number, a real one
    **{name: numpy_kernel(elementwise_in_float64(function)) for name, function in (
        ("logaddexp", _logaddexp), ("logaddexp2", _logaddexp2), ("rsqrt", lambda x: 1 / np.sqrt(x)),
        ("sigmoid", _sigmoid), ("sinc", _sinc),
    )},
    **{name: numpy_kernel(in_float32(function)) for name, function in (
        ("addcmul", _addcmul), ("addcdiv", _addcdiv), ("lerp", _lerp),
    )},
    "fmax": binary_kernel(np.fmax), "fmin": binary_kernel(np.fmin), "frexp": numpy_kernel(_frexp),
    "gcd": binary_kernel(np.gcd), "lcm": binary_kernel(np.lcm),
    "frac": unary_kernel(lambda x: np.subtract(x, np.trunc(x))),
    "nextafter": binary_kernel(_nextafter), "nan_to_num": numpy_kernel(_nan_to_num),
    "signbit": unary_kernel(lambda x: np.signbit(x) if x.dtype.kind not in "iub" else x < x.dtype.type(0)),
}  # fmt: skip
