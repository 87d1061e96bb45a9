"""Overrides of composites in fewer passes than their bodies take, and what NumPy has and the standard has not.

Half types are computed in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from candelabra_cpu.quiet import asarray, ndarray, quiet, quiet1, quiet2
from candelabra_cpu.special import split_over_cores

Kernel = Callable[..., Any]


def _rounded_once(function: Kernel) -> Kernel:
    """Half arrays go in as float32, and the result comes back in their dtype."""

    def kernel(*operands: Any) -> Any:
        d = next(o.dtype for o in operands if isinstance(o, ndarray))
        if d.itemsize > 2 or d.kind in "iub":
            return function(*operands)
        wide = [o.astype(np.float32) if isinstance(o, ndarray) else o for o in operands]
        return asarray(function(*wide)).astype(d)

    return quiet(kernel)


def _addcmul(x: Any, first: Any, second: Any, value: Any) -> Any:
    product = asarray(np.multiply(first, second))
    if value != 1:
        product = _into(np.multiply, product, value)
    return _into(np.add, product, x)


def _addcdiv(x: Any, first: Any, second: Any, value: Any) -> Any:
    quotient = asarray(np.divide(first, second) if value == 1 else np.divide(np.multiply(first, value), second))
    return _into(np.add, quotient, x)


def _lerp(x: Any, end: Any, weight: Any) -> Any:
    span = asarray(np.subtract(end, x))
    if isinstance(weight, ndarray):
        return np.where(np.abs(weight) < 0.5, x + weight * span, end - span * (1 - weight))
    if abs(weight) < 0.5:
        return _into(np.add, _into(np.multiply, span, weight), x)
    return np.subtract(end, _into(np.multiply, span, 1 - weight))


def _into(ufunc: np.ufunc, fresh: Any, other: Any) -> Any:
    """``ufunc(fresh, other)`` in the memory of ``fresh``, unless ``other`` makes it larger."""
    if isinstance(other, ndarray) and np.broadcast(fresh, other).shape != fresh.shape:
        return ufunc(fresh, other)
    return ufunc(fresh, other, fresh)


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

    return ml_dtypes.finfo(d)


def _logaddexp(function: np.ufunc) -> Kernel:
    def kernel(x: Any, y: Any) -> Any:
        if x.dtype.kind != "c":
            return split_over_cores(function, (x, y))
        first = x.real >= y.real
        high, low = np.where(first, x, y), np.where(first, y, x)
        same = (high == low) & ~np.isfinite(high)
        return np.where(same, high, high + np.log1p(np.exp(low - high)))

    return _rounded_once(kernel)


def _sinc(x: Any) -> Any:
    angle = asarray(np.multiply(x, np.pi))
    zero = angle == 0
    out = asarray(np.divide(np.sin(angle), angle))
    out[zero] = 1
    return out


def _without_bools(function: np.ufunc) -> Kernel:
    """For ufuncs that take integers only; the body of the record says so in the user's words."""

    def kernel(x: Any, y: Any) -> Any:
        if x.dtype.kind == "b":
            raise RuntimeError(f"\"{function.__name__}\" not implemented for 'Bool': it takes integers")
        return function(x, y)

    return quiet2(kernel)


def _frexp(x: Any) -> tuple[Any, Any]:
    mantissa, exponent = np.frexp(x)
    return asarray(mantissa), asarray(exponent, np.int32)


KERNELS: dict[str, Any] = {
    "addcmul": _rounded_once(_addcmul),
    "addcdiv": _rounded_once(_addcdiv),
    "lerp": _rounded_once(_lerp),
    "fmax": quiet2(np.fmax),
    "fmin": quiet2(np.fmin),
    "frexp": quiet(_frexp),
    "gcd": _without_bools(np.gcd),
    "lcm": _without_bools(np.lcm),
    "logaddexp": _logaddexp(np.logaddexp),
    "logaddexp2": _logaddexp(np.logaddexp2),
    "nan_to_num": quiet(_nan_to_num),
    "sinc": _rounded_once(_sinc),
    "signbit": quiet1(lambda x: np.signbit(x) if x.dtype.kind not in "iub" else x < x.dtype.type(0)),
}
