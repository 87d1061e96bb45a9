"""``-ln(u)``, and ``cos`` and ``sin`` of an angle in turns, in float64 from correctly rounded operations only.

Mathematical libraries differ in the last bits of logarithms and trigonometric functions, but not in the sums, products,
quotients and square roots of IEEE 754. The random-number specification (``docs/notes/0001-random-numbers.md``, section
7) therefore fixes these operations and their order, and normal and exponential numbers have the same bits on every
device with float64. Each step is one product, sum, quotient or root, never a fused multiply-add.

Sources: G. E. P. Box and M. E. Muller, "A note on the generation of random normal deviates", Ann. Math. Statist. 29
(1958); the argument reduction of the logarithm is that of FreeBSD's ``e_log.c`` (Sun Microsystems, 1993). The
polynomials are minimax (Remez exchange at 60 digits), rounded to float64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["cos_sin", "negative_log"]

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64 | np.uint32]

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

_QUARTER, _EIGHTH = 1 << 62, 1 << 61


def negative_log(h: Words, bits: int) -> Floats:
    """``-ln((h + 1/2) / 2**bits)`` for integers ``0 <= h < 2**bits``, ``bits <= 52``: positive and finite."""
    mantissa, k = np.frexp(h + 0.5)
    small = mantissa < SQRT_HALF
    exponent = (k - small) - float(bits)
    f = np.where(small, 2.0 * mantissa, mantissa) - 1.0
    s = f / (f + 2.0)
    z = s * s
    half_square = 0.5 * f * f
    series = z * _polynomial(z, LOG_COEFFICIENTS)
    out: Floats = ((half_square - (s * (half_square + series) + exponent * LN2_LOW)) - f) - exponent * LN2_HIGH
    return out


def cos_sin(angle: Words) -> tuple[Floats, Floats]:
    """``cos`` and ``sin`` of ``2*pi * angle / 2**64`` for multiples of ``2**11``, ``0 <= angle < 2**64``."""
    shifted = angle + np.uint64(_EIGHTH)
    quadrant = shifted >> np.uint64(62)
    x = ((shifted & np.uint64(_QUARTER - 1)).astype(np.float64) - _EIGHTH) * 2.0**-62
    z = x * x
    c = z * _polynomial(z, COS_COEFFICIENTS) + 1.0
    s = x * HALF_PI_HIGH + x * (z * _polynomial(z, SIN_COEFFICIENTS) + HALF_PI_LOW)
    odd = quadrant % 2 == 1
    c, s = np.where(odd, s, c), np.where(odd, c, s)
    return np.where((quadrant == 1) | (quadrant == 2), -c, c), np.where(quadrant >= 2, -s, s)


def _polynomial(z: Floats, coefficients: tuple[float, ...]) -> Floats:
    """Evaluate a polynomial by Horner's rule; the constant term is the first coefficient."""
    value = np.full_like(z, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value *= z
        value += coefficient
    return value
