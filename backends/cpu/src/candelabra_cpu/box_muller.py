"""``-ln`` and ``cos, sin`` of a turn in float64, from correctly rounded operations only.

The logarithm and the circular functions of two mathematical libraries differ in the last bits; sums, products,
quotients and square roots of IEEE 754 do not. So the random-number specification
(``docs/notes/0001-random-numbers.md``, section 7) fixes the operations and their order, and normal and exponential
numbers have the same bits on every device with float64. Here the steps stand twice: for one value in plain Python, the
obvious form and the fast one for a few values, and for NumPy arrays. A test holds the two against each other, bit for
bit.

Sources: G. E. P. Box and M. E. Muller, "A note on the generation of random normal deviates", Ann. Math. Statist. 29
(1958); the argument reduction of the logarithm is that of FreeBSD's ``e_log.c`` (Sun Microsystems, 1993). The
polynomials are minimax (Remez exchange at 60 digits), rounded to float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import frexp

import numpy as np
import numpy.typing as npt

__all__ = ["cos_sin", "cos_sin_scalar", "negative_log", "negative_log_scalar"]

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]

# (ln((1 + s) / (1 - s)) / s - 2) / z with z = s*s, |s| <= (sqrt(2) - 1) / (sqrt(2) + 1); error of z*G below 2**-56.
LOG_COEFFICIENTS = tuple(
    map(
        float.fromhex,
        (
            "0x1.5555555555558p-1",
            "0x1.999999999522fp-2",
            "0x1.2492492e02a7fp-2",
            "0x1.c71c62d1cda75p-3",
            "0x1.7462b9b6dcd74p-3",
            "0x1.39fdc7ed9805fp-3",
            "0x1.2b5f0a1bec941p-3",
        ),
    )
)
# (cos(pi/2 * x) - 1) / z with z = x*x, |x| <= 1/2; error of z*Q below 2**-62.
COS_COEFFICIENTS = tuple(
    map(
        float.fromhex,
        (
            "-0x1.3bd3cc9be45dep+0",
            "0x1.03c1f081b5ac0p-2",
            "-0x1.55d3c7e3cb243p-6",
            "0x1.e1f506868916ap-11",
            "-0x1.a6d1eef4b85a6p-16",
            "0x1.f9ce249452291p-22",
            "-0x1.b2f3fd9011174p-28",
        ),
    )
)
# (sin(pi/2 * x) / x - pi/2) / z with z = x*x, |x| <= 1/2; error of z*P below 2**-66.
SIN_COEFFICIENTS = tuple(
    map(
        float.fromhex,
        (
            "-0x1.4abbce625be53p-1",
            "0x1.466bc6775aae1p-4",
            "-0x1.32d2cce62b873p-8",
            "0x1.50783486fae02p-13",
            "-0x1.e3074d263e23dp-19",
            "0x1.e8f036e1a71f1p-25",
            "-0x1.6cc5842082abdp-31",
        ),
    )
)
HALF_PI_HIGH, HALF_PI_LOW = float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54")
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e4200000000p-1"), float.fromhex("0x1.fdf473de6af28p-22")
SQRT_HALF = float.fromhex("0x1.6a09e00000000p-1")  # sqrt(1/2), truncated to 32 bits of its pattern

_SQRT_HALF_BITS = 0x3FE6A09E << 32
_MASK = (1 << 64) - 1
_QUARTER, _EIGHTH = 1 << 62, 1 << 61
LOG_ROWS, ROWS = 7, 13
"""Arrays that the logarithm works in, and with it the circular functions."""


# One name a coefficient: the scalar forms write Horner's rule out, highest power first, since for a few values the call
# of a function would take as long as its work. Each step is one product and one sum, never a fused one.
_L0, _L1, _L2, _L3, _L4, _L5, _L6 = LOG_COEFFICIENTS
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = COS_COEFFICIENTS
_S0, _S1, _S2, _S3, _S4, _S5, _S6 = SIN_COEFFICIENTS


def negative_log_scalar(h: int, bits: int) -> float:
    """``-ln((h + 1/2) / 2**bits)`` for an integer ``0 <= h < 2**bits``, ``bits <= 52``: positive and finite."""
    mantissa, k = frexp(h + 0.5)
    if mantissa < SQRT_HALF:
        mantissa, k = mantissa * 2.0, k - 1
    exponent = float(k - bits)
    f = mantissa - 1.0
    s = f / (f + 2.0)
    z = s * s
    half_square = 0.5 * f * f
    series = z * ((((((_L6 * z + _L5) * z + _L4) * z + _L3) * z + _L2) * z + _L1) * z + _L0)
    return ((half_square - (s * (half_square + series) + exponent * LN2_LOW)) - f) - exponent * LN2_HIGH


def cos_sin_scalar(angle: int) -> tuple[float, float]:
    """``cos`` and ``sin`` of ``2*pi * angle / 2**64`` for a multiple of ``2**11``, ``0 <= angle < 2**64``."""
    turned = (angle + _EIGHTH) & _MASK
    x = ((turned & (_QUARTER - 1)) - _EIGHTH) * 2.0**-62
    z = x * x
    c = z * ((((((_C6 * z + _C5) * z + _C4) * z + _C3) * z + _C2) * z + _C1) * z + _C0) + 1.0
    sine = (((((_S6 * z + _S5) * z + _S4) * z + _S3) * z + _S2) * z + _S1) * z + _S0
    s = x * HALF_PI_HIGH + x * (z * sine + HALF_PI_LOW)
    quadrant = turned >> 62
    if quadrant & 1:
        c, s = s, c
    return (-c if (quadrant + 1) & 2 else c), (-s if quadrant & 2 else s)


def _rows(room: Floats | None, first: int, count: int, like: Words) -> list[Floats]:
    """``count`` arrays of that size to work in, from ``room`` or new."""
    if room is None:
        return [np.empty(like.shape) for _ in range(count)]
    return [row[: like.size] for row in room[first : first + count]]


def _polynomials(z: Floats, coefficients: Sequence[float], value: Floats) -> Floats:
    """Horner's rule for an array: the same operations, value by value, into ``value``."""
    np.multiply(z, coefficients[-1], out=value)
    for coefficient in reversed(coefficients[1:-1]):
        value += coefficient
        value *= z
    value += coefficients[0]
    return value


def negative_log(h: Words, bits: int, room: Floats | None = None) -> Floats:
    """`negative_log_scalar` for an array of integers below ``2**bits``: float64 of the same shape.

    ``room``, of shape `(ROWS, n)` with n at least the size of ``h``, is memory to work in, and then the result lies in
    it: fresh memory for each step takes longer than the steps.
    """
    value, whole, exponent, s, z, series, shifted = _rows(room, 0, LOG_ROWS, h)
    np.copyto(value, h.view(np.int64))
    value += 0.5
    pattern, k = value.view(np.int64), whole.view(np.int64)
    np.subtract(pattern, _SQRT_HALF_BITS, out=k)
    k >>= 52
    pattern -= np.left_shift(k, 52, out=shifted.view(np.int64))  # value is now the mantissa, in [sqrt(1/2), sqrt(2))
    k -= bits
    np.copyto(exponent, k)
    value -= 1.0
    np.add(value, 2.0, out=s)
    np.divide(value, s, out=s)
    np.multiply(s, s, out=z)
    _polynomials(z, LOG_COEFFICIENTS, series)
    series *= z
    half_square = np.multiply(value, 0.5, out=z)
    half_square *= value
    series += half_square
    series *= s
    series += np.multiply(exponent, LN2_LOW, out=s)
    half_square -= series
    half_square -= value
    exponent *= LN2_HIGH
    half_square -= exponent
    return half_square


def cos_sin(angle: Words, room: Floats | None = None) -> tuple[Floats, Floats]:
    """`cos_sin_scalar` for an array of angles, in ``2**-64`` turns: two float64 arrays of the same shape.

    ``room`` as for :func:`negative_log`, whose result in it is left alone.
    """
    first, second, x, z, c, s = _rows(room, LOG_ROWS, ROWS - LOG_ROWS, angle)
    turned, low = first.view(np.uint64), second.view(np.uint64)
    np.add(angle, np.uint64(_EIGHTH), out=turned)
    np.left_shift(turned, np.uint64(2), out=low)
    low ^= np.uint64(1 << 63)
    np.copyto(x, low.view(np.int64))
    x *= 2.0**-64
    np.multiply(x, x, out=z)
    _polynomials(z, COS_COEFFICIENTS, c)
    c *= z
    c += 1.0
    _polynomials(z, SIN_COEFFICIENTS, s)
    s *= z
    s += HALF_PI_LOW
    s *= x
    x *= HALF_PI_HIGH
    s += x
    # In odd quadrants the two change places: by their bits, since a branch at random costs more than the other steps.
    cosine, sine = c.view(np.uint64), s.view(np.uint64)
    np.left_shift(turned, np.uint64(1), out=low)
    odd = low.view(np.int64)
    odd >>= 63
    low &= np.bitwise_xor(cosine, sine, out=z.view(np.uint64))
    cosine ^= low
    sine ^= low
    sign = np.uint64(1 << 63)
    np.bitwise_and(turned, sign, out=low)
    sine ^= low
    turned += np.uint64(_QUARTER)
    turned &= sign
    cosine ^= turned
    return c, s
