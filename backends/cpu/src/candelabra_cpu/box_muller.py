"""``-ln(u)``, and ``cos`` and ``sin`` of an angle in turns, in float64 from correctly rounded operations only.

Mathematical libraries differ in the last bits of logarithms and trigonometric functions, but not in the sums, products,
quotients and square roots of IEEE 754. The random-number specification (``docs/notes/0001-random-numbers.md``, section
7) therefore fixes these operations and their order, and normal and exponential numbers have the same bits on every
device with float64. This module implements the steps twice: on Python floats, which is the obvious form and the faster
one for a few values, and on NumPy arrays. A test compares the two bit for bit.

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
"""The number of scratch arrays of the logarithm, and of the logarithm and ``cos_sin`` together."""


# The scalar forms write out Horner's rule, highest power first, with one name per coefficient: a function call would
# take as long as the computation. Each step is one product and one sum, never a fused multiply-add.
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
    shifted = (angle + _EIGHTH) & _MASK
    x = ((shifted & (_QUARTER - 1)) - _EIGHTH) * 2.0**-62
    z = x * x
    c = z * ((((((_C6 * z + _C5) * z + _C4) * z + _C3) * z + _C2) * z + _C1) * z + _C0) + 1.0
    sine = (((((_S6 * z + _S5) * z + _S4) * z + _S3) * z + _S2) * z + _S1) * z + _S0
    s = x * HALF_PI_HIGH + x * (z * sine + HALF_PI_LOW)
    quadrant = shifted >> 62
    if quadrant & 1:
        c, s = s, c
    return (-c if (quadrant + 1) & 2 else c), (-s if quadrant & 2 else s)


def _scratch_rows(workspace: Floats | None, first: int, count: int, like: Words) -> list[Floats]:
    """Return ``count`` scratch arrays of the size of ``like``: rows of ``workspace``, or new arrays without one."""
    if workspace is None:
        return [np.empty(like.shape) for _ in range(count)]
    return [row[: like.size] for row in workspace[first : first + count]]


def _polynomials(z: Floats, coefficients: Sequence[float], value: Floats) -> Floats:
    """Evaluate a polynomial by Horner's rule into ``value``, with the operations of the scalar form."""
    np.multiply(z, coefficients[-1], out=value)
    for coefficient in reversed(coefficients[1:-1]):
        value += coefficient
        value *= z
    value += coefficients[0]
    return value


def negative_log(h: Words, bits: int, workspace: Floats | None = None) -> Floats:
    """Apply :func:`negative_log_scalar` to an array of integers below ``2**bits``; float64 of the same shape.

    ``workspace``, of shape ``(ROWS, n)`` with n at least the size of ``h``, holds the temporaries and the result.
    Allocating memory for each step takes longer than the steps.
    """
    value, integral, exponent, s, z, series, shifted = _scratch_rows(workspace, 0, LOG_ROWS, h)
    np.copyto(value, h.view(np.int64))
    value += 0.5
    pattern, k = value.view(np.int64), integral.view(np.int64)
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


def cos_sin(angle: Words, workspace: Floats | None = None) -> tuple[Floats, Floats]:
    """Apply :func:`cos_sin_scalar` to an array of angles in units of ``2**-64`` turns; two float64 arrays.

    ``workspace`` is that of :func:`negative_log`, whose result in it is not overwritten.
    """
    first, second, x, z, c, s = _scratch_rows(workspace, LOG_ROWS, ROWS - LOG_ROWS, angle)
    shifted, low = first.view(np.uint64), second.view(np.uint64)
    np.add(angle, np.uint64(_EIGHTH), out=shifted)
    np.left_shift(shifted, np.uint64(2), out=low)
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
    # Swap the two in odd quadrants by bit operations: an unpredictable branch costs more than all other steps.
    cosine, sine = c.view(np.uint64), s.view(np.uint64)
    np.left_shift(shifted, np.uint64(1), out=low)
    odd = low.view(np.int64)
    odd >>= 63
    low &= np.bitwise_xor(cosine, sine, out=z.view(np.uint64))
    cosine ^= low
    sine ^= low
    sign = np.uint64(1 << 63)
    np.bitwise_and(shifted, sign, out=low)
    sine ^= low
    shifted += np.uint64(_QUARTER)
    shifted &= sign
    cosine ^= shifted
    return c, s
