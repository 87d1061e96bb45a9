"""Elementary functions of float32 as sequences of vectorised passes; vectorized.py defines their form.

Each function reduces its argument to a short interval and evaluates a minimax polynomial there. The polynomials are
fitted by iteratively reweighted least squares on Chebyshev points, with relative errors below 2**-24. Arguments outside
the range of the reduction, such as infinities, are passed to NumPy's function of float64. The error is about 2 ULP
(tests/cpu/test_float32.py has the bounds), and the signs of zeros are kept.

Sources: W. J. Cody and W. Waite, "Software Manual for the Elementary Functions" (1980), for the reductions; the
rational form of the exponential and the logarithm by ``f / (2 + f)`` are those of fdlibm (Sun, 1993).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

Kernel = Callable[..., Any]

LN2: Final = math.log(2)
SIGN: Final = -(1 << 31)
ONE: Final = 0x3F800000
HALF_ROOT: Final = 0x3F3504F3
"""The bits of 1 and of sqrt(1/2)."""
EXPONENT: Final = -(1 << 23)
"""The mask of the sign and exponent bits, which is also minus one unit of the exponent."""
MAGIC: Final = 1.5 * 2**23
"""Adding this number rounds to an integer, which is then in the lowest bits."""


def _mend(out: Any, odd: Any, function: Kernel, *operands: Any) -> None:
    """Replace the ``odd`` elements by the results of NumPy's function of float64.

    NumPy's functions of float32 use other code on other processors, with errors of up to 4 ULP.
    """
    if odd.any():
        out[odd] = function(*(x[odd].astype(np.float64) for x in operands))


def _signed(x: Any, out: Any, bits: Any) -> None:
    """Give ``out`` the sign of ``x``. Its elements are positive, or have that sign already."""
    bits = bits.view(np.int32)
    np.bitwise_and(x.view(np.int32), SIGN, bits)
    np.bitwise_or(out.view(np.int32), bits, out.view(np.int32))


def _horner(coefficients: tuple[float, ...], z: Any, out: Any) -> None:
    """Evaluate the polynomial in ``z`` into ``out``; the constant term is the first coefficient."""
    *others, last = coefficients
    np.multiply(z, last, out)
    for c in reversed(others[1:]):
        np.add(out, c, out)
        np.multiply(out, z, out)
    np.add(out, others[0], out)


# -- logarithms -------------------------------------------------------------------------------------------------------
LOG: Final = (0.6666677594184875, 0.3997754156589508, 0.29871729016304016)
"""``(2 atanh(t) / t - 2) / t**2`` in powers of t**2, up to t = (sqrt(2) - 1) / (sqrt(2) + 1)."""


def _log_of_next(x: Any, out: Any, s: Any, t: Any, z: Any) -> None:
    """``log(1 + x)`` for -1 < x < 2**127.

    With ``1 + x = 2**e (1 + f)`` and ``t = f / (2 + f)``, the logarithm is ``e ln 2 + f - t (f - t**2 P(t**2))``. f is
    computed as ``2**-e x + (2**-e - 1)``, which loses no digits.
    """
    bits = s.view(np.int32)
    np.add(x, 1, out)
    np.subtract(HALF_ROOT - 1 - EXPONENT, out.view(np.int32), bits)
    np.bitwise_and(bits, EXPONENT, bits)  # -e in the bits of the exponent
    np.copyto(z, bits, casting="unsafe")
    np.add(bits, ONE, bits)
    np.multiply(x, s, out)
    np.subtract(1, s, s)
    np.subtract(out, s, out)  # f
    np.add(out, 2, t)
    np.divide(out, t, t)
    np.multiply(z, LN2 / 2**23, s)
    np.multiply(t, t, z)
    a, b, c = LOG
    tail = z * c
    np.add(tail, b, tail)
    np.multiply(tail, z, tail)
    np.add(tail, a, tail)
    np.multiply(tail, z, tail)
    np.subtract(out, tail, tail)
    np.multiply(tail, t, tail)
    np.subtract(out, tail, out)
    np.subtract(out, s, out)


def log1p(x: Any, out: Any, s: Any, t: Any, z: Any) -> None:
    """``log(1 + x)``."""
    _log_of_next(x, out, s, t, z)
    if not (x.min() > -1 and x.max() < 1e38):
        np.putmask(out, x < -1, math.nan)
        _mend(out, (x == -1) | (x >= 1e38), np.log1p, x)


def asinh(x: Any, out: Any, a: Any, s: Any, t: Any, z: Any) -> None:
    """``log1p(a + a**2 / (1 + sqrt(1 + a**2)))`` with a = ``abs(x)``."""
    np.multiply(x, x, s)
    np.add(s, 1, t)
    np.sqrt(t, t)
    np.add(t, 1, t)
    np.divide(s, t, s)
    np.abs(x, a)
    np.add(a, s, a)
    _log_of_next(a, out, s, t, z)
    _signed(x, out, s)
    if not a.max() < 1e18:
        np.abs(x, s)
        _mend(out, s >= 1e18, np.arcsinh, x)


def acosh(x: Any, out: Any, a: Any, s: Any, t: Any, z: Any) -> None:
    """``log1p(t + sqrt(t (2 + t)))`` with t = x - 1."""
    np.subtract(x, 1, s)
    np.add(x, 1, t)
    np.multiply(s, t, t)
    np.sqrt(t, t)
    np.add(s, t, a)
    _log_of_next(a, out, s, t, z)
    if not (x.min() >= 1 and x.max() < 1e18):
        np.putmask(out, x < 1, math.nan)
        _mend(out, x >= 1e18, np.arccosh, x)


def atanh(x: Any, out: Any, a: Any, s: Any, t: Any, z: Any) -> None:
    """``log1p(2 a / (1 - a)) / 2`` with a = ``abs(x)``."""
    np.abs(x, z)
    np.subtract(1, z, s)
    np.add(z, z, a)
    np.divide(a, s, a)
    _log_of_next(a, out, s, t, z)
    np.multiply(out, 0.5, out)
    _signed(x, out, s)
    if not (x.min() > -1 and x.max() < 1):
        np.abs(x, z)
        np.putmask(out, z > 1, math.nan)
        _mend(out, z == 1, np.arctanh, x)


def logaddexp(x: Any, y: Any, out: Any, a: Any, s: Any, t: Any, z: Any) -> None:
    """``max(x, y) + log1p(exp(-abs(x - y)))``."""
    np.subtract(x, y, a)
    np.abs(a, a)
    np.negative(a, a)
    np.exp(a, a)
    _log_of_next(a, out, s, t, z)
    np.maximum(x, y, out=s)
    np.add(out, s, out)
    if not a.min() >= 0:  # infinities of one sign, or NaN
        _mend(out, a != a, np.logaddexp, x, y)


# -- exponentials -----------------------------------------------------------------------------------------------------
EXP: Final = (0.16666623950004578, -0.0027665349189192057)
"""``1 / 6 - r**2 / 360 + …``: what ``c`` lacks of r, over r**2, up to r = ln(2) / 2."""
LN2_HIGH: Final = 0.693359375
"""Nine bits of ln 2, so that products with integers are exact."""
LN2_LOW: Final = LN2 - LN2_HIGH


def _less_one(x: Any, out: Any, s: Any, c: Any, z: Any, unit: int) -> None:
    """``p = exp(r) - 1`` in ``out`` and ``2**k`` in ``s``, with ``x = k ln 2 + r``; ``unit`` is 1's bits, or a half's.

    ``exp(r) = 1 + r + r c / (2 - c)``, where ``c = r - r**2 P(r**2)``.
    """
    np.multiply(x, 1 / LN2, s)
    np.add(s, MAGIC, s)
    np.subtract(s, MAGIC, c)
    np.multiply(c, LN2_HIGH, out)
    np.subtract(x, out, out)
    np.multiply(c, LN2_LOW, c)
    np.subtract(out, c, out)
    _near_one(out, s, c, z, unit)


def _near_one(out: Any, s: Any, c: Any, z: Any, unit: int) -> None:
    """``exp(r) - 1`` of r in ``out``, into ``out``; in ``s`` 2**k, of k + MAGIC there."""
    np.multiply(out, out, z)
    np.multiply(z, EXP[1], c)
    np.add(c, EXP[0], c)
    np.multiply(c, z, c)
    np.subtract(out, c, c)
    np.subtract(2, c, z)
    np.multiply(c, out, c)
    np.divide(c, z, c)
    np.add(out, c, out)
    bits = s.view(np.int32)
    np.left_shift(bits, 23, bits)
    np.add(bits, unit, bits)


def exp2(x: Any, out: Any, s: Any, c: Any, z: Any) -> None:
    """``2**k exp((x - k) ln 2)``."""
    np.add(x, MAGIC, s)
    np.subtract(s, MAGIC, c)
    np.subtract(x, c, out)
    np.multiply(out, LN2, out)
    _near_one(out, s, c, z, ONE)
    np.multiply(out, s, out)
    np.add(out, s, out)
    if not (x.max() < 127.5 and x.min() > -126):
        _mend(out, (x >= 127.5) | (x <= -126), np.exp2, x)


def expm1(x: Any, out: Any, s: Any, c: Any, z: Any) -> None:
    """``exp(x) - 1``."""
    np.maximum(x, -20, out=z)  # from where it is -1
    _less_one(z, out, s, c, z, ONE)
    np.multiply(out, s, out)
    np.subtract(s, 1, s)
    np.add(out, s, out)
    _signed(x, out, s)
    if not x.max() < 88:
        _mend(out, x >= 88, np.expm1, x)


def sinh(x: Any, out: Any, a: Any, s: Any, c: Any, z: Any) -> None:
    """``(p + p / (p + 1)) / 2`` with p = expm1(``abs(x)``)."""
    np.abs(x, a)
    _less_one(a, out, s, c, z, ONE)
    np.multiply(out, s, out)
    np.subtract(s, 1, s)
    np.add(out, s, out)
    np.add(out, 1, s)
    np.divide(out, s, s)
    np.add(out, s, out)
    np.multiply(out, 0.5, out)
    _signed(x, out, s)
    if not a.max() < 88:
        _mend(out, a >= 88, np.sinh, x)


def cosh(x: Any, out: Any, a: Any, s: Any, c: Any, z: Any) -> None:
    """``h + 1 / (4 h)`` with h = exp(``abs(x)``) / 2."""
    np.abs(x, a)
    _less_one(a, out, s, c, z, ONE + EXPONENT)
    np.multiply(out, s, out)
    np.add(out, s, out)
    np.divide(0.25, out, s)
    np.add(out, s, out)
    if not a.max() < 88:
        _mend(out, a >= 88, np.cosh, x)


def sigmoid(x: Any, out: Any) -> None:
    """``1 / (1 + exp(-x))``."""
    np.negative(x, out)
    np.exp(out, out)
    np.add(out, 1, out)
    np.divide(1, out, out)


# -- inverse trigonometric functions ----------------------------------------------------------------------------------
ATAN: Final = (
    -0.3333316743373871, 0.19994136691093445, -0.14214208722114563, 0.10678939521312714, -0.07580576092004776,
    0.043553516268730164, -0.01658116839826107, 0.0029745865613222122,
)  # fmt: skip
"""``(atan(t) / t - 1) / t**2`` in powers of t**2, up to t = 1."""
ASIN: Final = (
    0.16666753590106964, 0.07495241612195969, 0.04547709971666336, 0.024147601798176765, 0.042218565940856934,
)  # fmt: skip
"""``(asin(t) / t - 1) / t**2`` in powers of t**2, up to t = 1/2."""
HALF_PI: Final = math.pi / 2
HALF_PI_LOW: Final = HALF_PI - float(np.float32(HALF_PI))


def _angle(low: Any, high: Any, out: Any, t: Any, z: Any) -> None:
    """Write ``atan(low / high)`` into ``out``, for 0 <= low <= high."""
    np.divide(low, high, t)
    np.multiply(t, t, z)
    _horner(ATAN, z, out)
    np.multiply(out, z, out)
    np.multiply(out, t, out)
    np.add(out, t, out)


def atan(x: Any, out: Any, a: Any, s: Any, t: Any, z: Any) -> None:
    """``atan(a)`` with a = ``abs(x)``, or ``pi / 2 - atan(1 / a)`` for a above 1."""
    np.abs(x, a)
    np.minimum(a, 1, out=s)
    np.maximum(a, 1, out=z)
    _angle(s, z, out, t, z)
    np.copyto(a, np.greater(a, 1))
    _from_half_pi(a, out, s)
    _signed(x, out, s)


def _from_half_pi(ones: Any, out: Any, s: Any) -> None:
    """``pi / 2 - out`` where ``ones`` is 1, ``out`` where it is 0."""
    np.multiply(ones, np.float32(HALF_PI_LOW), s)
    np.subtract(out, s, out)
    np.multiply(ones, np.float32(HALF_PI), s)
    np.subtract(s, out, out)
    np.abs(out, out)


def atan2(y: Any, x: Any, out: Any, a: Any, s: Any, t: Any, z: Any) -> None:
    """The angle of (x, y), from the angle to the nearer axis by reflection."""
    np.abs(y, a)
    np.abs(x, s)
    above = np.greater(a, s)
    np.minimum(a, s, out=t)
    np.maximum(a, s, out=z)
    _angle(t, z, out, t, z)
    np.copyto(a, above)
    _from_half_pi(a, out, s)
    np.multiply(np.signbit(x), np.float32(math.pi), a)
    np.subtract(a, out, out)
    np.abs(out, out)
    _signed(y, out, s)
    if np.isnan(out.max()):  # 0 / 0, inf / inf
        _mend(out, out != out, np.arctan2, y, x)


def _arc(x: Any, out: Any, a: Any, s: Any, z: Any) -> None:
    """Write ``asin(t) - t`` into ``out`` and ``t = min(abs(x), sqrt((1 - abs(x)) / 2))`` into ``s``.

    ``a`` is 1 where t is the square root, else 0.
    """
    np.abs(x, a)
    np.subtract(1, a, s)
    np.multiply(s, 0.5, s)
    np.sqrt(s, s)
    np.minimum(a, s, out=s)
    np.multiply(s, s, z)
    _horner(ASIN, z, out)
    np.multiply(out, z, out)
    np.multiply(out, s, out)
    np.copyto(a, np.greater(a, 0.5))


def asin(x: Any, out: Any, a: Any, s: Any, z: Any) -> None:
    """``r`` or ``pi / 2 - 2 r``, where r = asin(t) is the sum of two parts."""
    _arc(x, out, a, s, z)
    np.add(a, 1, z)
    np.multiply(out, z, out)
    np.multiply(s, z, s)
    np.multiply(a, np.float32(HALF_PI_LOW), z)
    np.subtract(out, z, out)
    np.multiply(a, np.float32(HALF_PI), a)
    np.subtract(a, s, a)
    np.subtract(a, out, out)
    np.abs(out, out)
    _signed(x, out, s)


def acos(x: Any, out: Any, a: Any, s: Any, z: Any) -> None:
    """``pi / 2 - r``, ``2 r`` or ``pi - 2 r``; ``pi / 2 + r`` for negative x."""
    _arc(x, out, a, s, z)
    np.add(out, s, out)
    np.multiply(a, 3, s)
    np.subtract(s, 1, s)
    np.multiply(out, s, out)  # -r or 2 r
    bits = s.view(np.int32)
    np.bitwise_and(x.view(np.int32), SIGN, bits)
    np.bitwise_xor(out.view(np.int32), bits, out.view(np.int32))
    np.bitwise_or(a.view(np.int32), bits, a.view(np.int32))  # the sign of x, or a zero
    np.subtract(1, a, a)
    np.multiply(a, np.float32(HALF_PI_LOW), s)
    np.add(out, s, out)
    np.multiply(a, np.float32(HALF_PI), a)
    np.add(out, a, out)


# -- the error function -----------------------------------------------------------------------------------------------
ERF: Final = (
    1.128379225730896, 0.10277131199836731, -0.0002021516702370718, -0.000603681372012943, 7.648990140296519e-05,
    -1.8611889345265809e-06, -5.150691890776216e-07, 5.391412116750871e-08, -1.640670932445687e-09,
)  # fmt: skip
"""``atanh(erf(x)) / x`` in powers of x**2, up to x = 4."""


def erf(x: Any, out: Any, s: Any, z: Any) -> None:
    """``tanh(x P(x**2))``. Where the hyperbolic tangent is flat, errors of the polynomial do not matter."""
    np.multiply(x, x, z)
    np.minimum(z, 15.5, out=z)  # beyond, erf(x) is 1
    _horner(ERF, z, s)
    np.multiply(x, s, s)
    np.tanh(s, out)


# -- functions of few passes -------------------------------------------------------------------------------------------
def frac(x: Any, out: Any) -> None:
    """The fractional part."""
    np.trunc(x, out)
    np.subtract(x, out, out)


def rsqrt(x: Any, out: Any) -> None:
    """``1 / sqrt(x)``."""
    np.sqrt(x, out)
    np.divide(1, out, out)


def sign(x: Any, out: Any) -> None:
    """-1, 0 or 1."""
    np.sign(x, out)


def angle(x: Any, out: Any) -> None:
    """Pi for negative numbers, NaN for NaN, otherwise 0."""
    np.multiply(np.less(x, 0), np.float32(math.pi), out)
    if np.isnan(x.max()):
        _mend(out, x != x, np.positive, x)


def nextafter(x: Any, y: Any, out: Any, s: Any) -> None:
    """The bits of x as an integer, plus or minus 1."""
    bits = s.view(np.int32)
    same = np.equal(np.greater(y, x), np.greater(x, 0))
    np.copyto(bits, same)
    np.add(bits, bits, bits)
    np.subtract(bits, 1, bits)
    np.add(x.view(np.int32), bits, out.view(np.int32))
    ordinary = np.not_equal(x, y)
    np.logical_and(ordinary, x, out=ordinary)
    if not ordinary.all() or np.isnan(x.max()) or np.isnan(y.max()):
        odd = ~(ordinary & (x == x) & (y == y))
        out[odd] = np.nextafter(x[odd], y[odd])


FUNCTIONS: Final[dict[str, Kernel]] = {
    f.__name__: f for f in (
        acos, acosh, angle, asin, asinh, atan, atan2, atanh, cosh, erf, exp2, expm1, frac, log1p, logaddexp, nextafter,
        rsqrt, sigmoid, sign, sinh,
    )
}  # fmt: skip
"""The functions by operator."""
