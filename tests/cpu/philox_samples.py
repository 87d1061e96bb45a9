"""Philox, logarithms and angles in plain Python, and constants of the tests of the CPU's random numbers."""

from math import frexp
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from candelabra_cpu import box_muller

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
REAL = [np.dtype("float16"), BFLOAT16, np.dtype("float32"), np.dtype("float64")]
COMPLEX = [np.dtype("complex64"), np.dtype("complex128")]
MASK = 2**64 - 1
SEED, OFFSET = 20240229, 41
RARE = 1e-3  # In the forty tests of one distribution, chance produces such a p-value for one choice of seeds in 25.


def philox4x64(counter: list[int], key: list[int]) -> list[int]:
    """Return one block of Philox 4x64-10, computed in plain Python from the paper's definition."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        left, right = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (right >> 64) ^ c1 ^ k0, right & MASK, (left >> 64) ^ c3 ^ k1, left & MASK
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK, (k1 + 0xBB67AE8584CAA73B) & MASK
    return [c0, c1, c2, c3]


def block(seed: int, offset: int, n: int) -> list[int]:
    """Return the first n words after ``offset``, computed by the plain block function."""
    return [word for i in range((n + 3) // 4) for word in philox4x64([offset + 1 + i, 0, 0, 0], [seed, 0])][:n]


def same_bits(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> bool:
    """Return whether two arrays agree in shape, dtype and every bit."""
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


LOG, COS, SIN = box_muller.LOG_COEFFICIENTS, box_muller.COS_COEFFICIENTS, box_muller.SIN_COEFFICIENTS


def plain_negative_log(h: int, bits: int) -> float:
    """``-ln((h + 1/2) / 2**bits)`` for an integer ``0 <= h < 2**bits``, ``bits <= 52``: positive and finite."""
    mantissa, k = frexp(h + 0.5)
    if mantissa < box_muller.SQRT_HALF:
        mantissa, k = mantissa * 2.0, k - 1
    exponent = float(k - bits)
    f = mantissa - 1.0
    s = f / (f + 2.0)
    z = s * s
    half_square = 0.5 * f * f
    series = z * ((((((LOG[6] * z + LOG[5]) * z + LOG[4]) * z + LOG[3]) * z + LOG[2]) * z + LOG[1]) * z + LOG[0])
    return (
        (half_square - (s * (half_square + series) + exponent * box_muller.LN2_LOW)) - f
    ) - exponent * box_muller.LN2_HIGH


def plain_cos_sin(angle: int) -> tuple[float, float]:
    """``cos`` and ``sin`` of ``2*pi * angle / 2**64`` for a multiple of ``2**11``, ``0 <= angle < 2**64``."""
    shifted = (angle + (1 << 61)) & MASK
    x = ((shifted & ((1 << 62) - 1)) - (1 << 61)) * 2.0**-62
    z = x * x
    c = z * ((((((COS[6] * z + COS[5]) * z + COS[4]) * z + COS[3]) * z + COS[2]) * z + COS[1]) * z + COS[0]) + 1.0
    sine = (((((SIN[6] * z + SIN[5]) * z + SIN[4]) * z + SIN[3]) * z + SIN[2]) * z + SIN[1]) * z + SIN[0]
    s = x * box_muller.HALF_PI_HIGH + x * (z * sine + box_muller.HALF_PI_LOW)
    quadrant = shifted >> 62
    if quadrant & 1:
        c, s = s, c
    return (-c if (quadrant + 1) & 2 else c), (-s if quadrant & 2 else s)
