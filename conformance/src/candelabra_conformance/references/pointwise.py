"""Pointwise arithmetic, comparison, bits, rounding, exponentials and trigonometry, by NumPy's functions or formulas.

All floating functions keep the precision of 80-bit arguments. Integers have the dtype that the operator computes in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from candelabra_conformance.references.promoted import halves_in_single, of_floats
from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]

references(
    {
        "abs": np.abs, "add": np.add, "ceil": np.ceil, "clamp_max": np.minimum, "clamp_min": np.maximum,
        "conj_physical": np.conjugate, "eq": np.equal, "floor": np.floor, "fmax": np.fmax, "fmin": np.fmin,
        "fmod": np.fmod, "ge": np.greater_equal, "gt": np.greater, "hypot": np.hypot, "isfinite": np.isfinite,
        "isinf": np.isinf, "isnan": np.isnan, "isneginf": lambda x: x == -np.inf, "isposinf": lambda x: x == np.inf,
        "isreal": np.isreal, "le": np.less_equal, "logaddexp2": np.logaddexp2, "logical_and": np.logical_and,
        "logical_not": np.logical_not, "logical_or": np.logical_or, "logical_xor": np.logical_xor, "lt": np.less,
        "maximum": np.maximum, "minimum": np.minimum, "mul": np.multiply, "ne": np.not_equal, "neg": np.negative,
        "positive": np.positive, "remainder": np.remainder, "signbit": lambda x: x < 0 if x.dtype.kind in "biu"
        else np.signbit(x), "sub": np.subtract, "trunc": np.trunc,
    },
    extended=True,
)  # fmt: skip
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "copysign": np.copysign, "cos": np.cos,
    "cosh": np.cosh, "div": np.true_divide, "exp": np.exp, "expm1": np.expm1, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt,
    "tan": np.tan, "tanh": np.tanh,
}  # fmt: skip
"""NumPy's functions of floats."""
references({name: of_floats(function) for name, function in FUNCTIONS.items()}, extended=True)


def _factor(x: Any, alpha: Any) -> Any:
    return x * (x.dtype.type(alpha) if isinstance(x, np.ndarray) else alpha)


references(
    {
        "add_scaled": lambda x, y, alpha: np.add(x, _factor(y, alpha)),
        "sub_scaled": lambda x, y, alpha: np.subtract(x, _factor(y, alpha)),
        "rsub": lambda x, y, alpha=1: np.subtract(y, _factor(x, alpha)),
        "clamp": lambda x, low=None, high=None: _limited(x, low, high),
    },
    extended=True,
)


def _limited(x: Array, low: Any, high: Any) -> Any:
    above = x if low is None else np.maximum(x, _like(low, x))
    return above if high is None else np.minimum(above, _like(high, x))


def _like(bound: Any, x: Array) -> Any:
    return bound if isinstance(bound, np.ndarray) else x.dtype.type(bound)


references(
    {
        "bitwise_and": np.bitwise_and, "bitwise_not": np.invert, "bitwise_or": np.bitwise_or,
        "bitwise_xor": np.bitwise_xor, "gcd": np.gcd, "lcm": np.lcm,
    }
)  # fmt: skip


@reference("nextafter", as_given=True)
def nextafter(x: Array, y: Array) -> Any:
    """Call NumPy's function. For two zeros return the second as in C, since NumPy's float16 loses its sign."""
    return np.where(x == y, y, np.nextafter(x, y))


@reference("heaviside", extended=True)
def heaviside(x: Array, values: Array) -> Any:
    """Return 0 below 0 and for NaN, 1 above, ``values`` at 0."""
    return np.where(x == 0, values, np.asarray(x > 0).astype(x.dtype))


@reference("angle", extended=True)
@of_floats
def angle(x: Array) -> Any:
    """Return the argument of complex numbers; for real ones pi below 0 and 0 otherwise, also for -0.0."""
    if x.dtype.kind == "c":
        return np.arctan2(x.imag, x.real)
    return np.where(x < 0, _pi(x), np.where(x == x, x.dtype.type(0), x))


@reference("sign", "sgn", extended=True)
def sign(x: Array) -> Any:
    """Return -1, 0 or 1; for complex numbers the direction, ``z / |z|``."""
    if x.dtype.kind == "b":
        return x
    if x.dtype.kind != "c":
        return (x > 0) * x.dtype.type(1) - (x < 0) * x.dtype.type(1) + 0 * np.where(x == x, 0, x)
    with np.errstate(all="ignore"):
        return np.where(x == 0, 0, x / np.abs(x))


# -- quotients --------------------------------------------------------------------------------------------------------
@reference("floor_divide", as_given=True)
@halves_in_single
def floor_divide(x: Array, y: Array) -> Any:
    """Return the exact quotient rounded down, as in Python."""
    return np.floor_divide(x, y)


@reference("trunc_divide", as_given=True)
@halves_in_single
def trunc_divide(x: Array, y: Array) -> Any:
    """Return the quotient truncated towards 0: for floats the rounded one, for integers the exact one."""
    if np.result_type(x, y).kind == "f":
        return np.trunc(np.divide(x, y))
    whole, rest = np.divmod(x, y)
    return whole + ((whole < 0) & (rest != 0))


@reference("Tensor.__rdiv__", extended=True)
def rdiv(x: Array, y: Any) -> Any:
    """Divide with exchanged operands."""
    return np.true_divide(y, x)


@reference("div_rounded", as_given=True)
def div_rounded(x: Array, y: Array, rounding_mode: str) -> Any:
    """Round down or towards 0."""
    return floor_divide(x, y) if rounding_mode == "floor" else trunc_divide(x, y)


@reference("reciprocal", extended=True)
@of_floats
def reciprocal(x: Array) -> Any:
    """Return ``1 / x``."""
    return np.divide(x.dtype.type(1), x)


# -- powers -----------------------------------------------------------------------------------------------------------
@reference("pow", extended=True)
def power(x: Any, y: Any) -> Any:
    """Call C's ``pow`` for floats; for integers compute exactly in Python and wrap."""
    d = np.result_type(x, y)
    if d.kind not in "iub":
        return np.power(x, y)
    x, y = np.broadcast_arrays(x, y)
    out = np.empty(x.shape, object)
    bits = 8 * d.itemsize
    for at in np.ndindex(x.shape):
        out[at] = _integer_power(int(x[at]), int(y[at]), bits)
    return _wrapped(out, d)


def _integer_power(base: int, exponent: int, bits: int) -> int:
    if exponent >= 0:
        return pow(base, exponent, 1 << bits)
    return 1 if base == 1 or (base == -1 and exponent % 2 == 0) else -1 if base == -1 else 0


def _wrapped(values: Array, d: np.dtype[Any]) -> Array:
    """Convert integers of any size to an integer dtype, by their lowest bits."""
    if d.kind == "b":
        return values.astype(bool)
    unsigned = np.dtype(f"u{d.itemsize}")
    lowest = np.bitwise_and(values, (1 << 8 * d.itemsize) - 1) if values.size else values
    return np.asarray(lowest).astype(unsigned).view(d)


@reference("float_power", "Tensor.float_power_", extended=True)
def float_power(x: Any, y: Any) -> Any:
    """Cast to double precision, then call C's ``pow``."""
    return np.power(_double(x), _double(y))


def _double(value: Any) -> Any:
    array = np.asarray(value)
    if array.dtype.type in (np.longdouble, np.clongdouble):
        return array
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


@reference("square", extended=True)
def square(x: Array) -> Any:
    """Return ``x * x``."""
    return np.multiply(x, x)


@reference("rsqrt", extended=True)
@of_floats
def rsqrt(x: Array) -> Any:
    """Return ``1 / sqrt(x)``."""
    return np.divide(x.dtype.type(1), np.sqrt(x))


@reference("exp2", extended=True)
@of_floats
def exp2(x: Array) -> Any:
    """Call NumPy's function for real numbers; compute ``exp(x log 2)`` for complex ones."""
    return np.exp(x * np.log(x.real.dtype.type(2))) if x.dtype.kind == "c" else np.exp2(x)


@reference("ldexp", extended=True)
@of_floats
def ldexp(x: Any, y: Any) -> Any:
    """Return ``x * 2**y``, also if ``y`` is not an integer."""
    return np.multiply(x, np.power(np.result_type(x, y).type(2), y))


# -- bits -------------------------------------------------------------------------------------------------------------
@reference("bitwise_left_shift")
def left_shift(x: Any, y: Any) -> Any:
    """Return the lowest bits of ``x * 2**y``; 0 if ``y`` is negative or at least the width."""
    return _shifted(x, y, lambda value, by, width: value << by if 0 <= by < width else 0)


@reference("bitwise_right_shift")
def right_shift(x: Any, y: Any) -> Any:
    """Return ``x / 2**y`` rounded down; if ``y`` is negative or at least the width, return 0 or -1."""
    return _shifted(x, y, lambda value, by, width: value >> (by if 0 <= by < width else width))


def _shifted(x: Any, y: Any, shift: Any) -> Array:
    d = np.result_type(x, y)
    x, y = np.broadcast_arrays(x, y)
    out = np.empty(x.shape, object)
    for at in np.ndindex(x.shape):
        out[at] = shift(int(x[at]), int(y[at]), 8 * d.itemsize)
    return _wrapped(out, d)


# -- values between ---------------------------------------------------------------------------------------------------
@reference("lerp", extended=True)
def lerp(start: Array, end: Array, weight: Any) -> Any:
    """Return ``start + weight * (end - start)``, and exactly the end if the weight is 1."""
    return np.where(np.equal(weight, 1), end, start + weight * (end - start))


@reference("frac", extended=True)
def frac(x: Array) -> Any:
    """Return the fractional part."""
    return x - np.trunc(x)


# -- degrees, sines ---------------------------------------------------------------------------------------------------
@reference("deg2rad", extended=True)
@of_floats
def deg2rad(x: Array) -> Any:
    """Convert degrees to radians."""
    return x * (_pi(x) / 180)


@reference("rad2deg", extended=True)
@of_floats
def rad2deg(x: Array) -> Any:
    """Convert radians to degrees."""
    return x * (180 / _pi(x))


@reference("sinc", extended=True)
@of_floats
def sinc(x: Array) -> Any:
    """Return ``sin(pi x) / (pi x)``: 1 at 0, 0 at the other integers, from the sine of the distance to the nearest
    integer."""
    n = np.rint(x.real)
    sine = np.sin(_pi(x) * (x - n)) * np.where(np.fmod(n, 2) == 0, 1, -1)
    return np.where(x == 0, x.dtype.type(1), sine / np.where(x == 0, 1, _pi(x) * x))


@reference("sinc_backward", extended=True)
@of_floats
def sinc_backward(g: Array, x: Array) -> Any:
    """Return ``g`` times the conjugate of ``(cos(pi x) - sinc(x)) / x``, near 0 from the Taylor series."""
    y = _pi(x) * x
    near = np.abs(y) < 1
    small, far = np.where(near, y, 0), np.where(near, 1, y)
    term, series = -small / 3, 0 * small
    for k in range(1, 14):
        series = series + term
        term = -term * small * small / (2 * k * (2 * k + 3))
    return g * np.conjugate(_pi(x) * np.where(near, series, (np.cos(far) - np.sin(far) / far) / far))


def _pi(x: Array) -> Any:
    # Four times the arc tangent of 1, since ``np.pi`` has only 53 bits.
    return 4 * np.arctan(x.real.dtype.type(1))


# -- sums of exponentials, products with logarithms -------------------------------------------------------------------
@reference("logaddexp", extended=True)
def logaddexp(x: Array, y: Array) -> Any:
    """Call NumPy's function for real numbers; for complex ones factor out the term with the larger modulus."""
    if x.dtype.kind != "c":
        return np.logaddexp(x, y)
    high, low = np.where(x.real >= y.real, x, y), np.where(x.real >= y.real, y, x)
    return high + np.log1p(np.exp(low - high))


def _product(x: Any, y: Any, log: Any) -> Any:
    zero = np.equal(x, 0) & ~np.isnan(y)
    return np.where(zero, np.result_type(x, y).type(0), x * log(np.where(zero, y * 0 + 1, y)))


@reference("xlogy", extended=True)
@of_floats
def xlogy(x: Any, y: Any) -> Any:
    """Return ``x log(y)``, or 0 if x is 0 and y is not NaN."""
    return _product(x, y, np.log)


@reference("special_xlog1py", extended=True)
@of_floats
def xlog1py(x: Any, y: Any) -> Any:
    """Return ``x log(1 + y)``, or 0 if x is 0 and y is not NaN."""
    return _product(x, y, np.log1p)


@reference("special_entr", extended=True)
@of_floats
def entropy(x: Array) -> Any:
    """Return ``-x log(x)``: 0 at 0, -inf below."""
    positive = np.where(x > 0, x, 1)
    return np.where(x > 0, -positive * np.log(positive), np.where(x == 0, 0, np.where(x < 0, -np.inf, x)))
