"""Remainders of float32 in vectorised passes.

C's ``fmod`` takes 20 ns per element and is needed for large quotients only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from candelabra_cpu.blocks import large_in_blocks
from candelabra_cpu.numpy_kernels import asarray, binary_kernel, ndarray

Kernel = Callable[..., Any]
EXACT: Final = float(1 << 24)
"""Quotients up to here are exact in float32, and their product with the divisor is exact in float64."""


def _by_quotient(ufunc: np.ufunc, rounding: np.ufunc, sign_of_divisor: bool) -> Kernel:
    """Return ``x - rounding(x / y) * y``, computed exactly.

    The rounded quotient is never too small and at most 1 too large. If it is too large, the remainder has the wrong
    sign and the divisor is added once. Large quotients, infinities and NaN are passed to ``ufunc``.
    """

    def remainder(x: Any, y: Any) -> Any:
        d = x.dtype if x.__class__ is ndarray else y.dtype
        if d.char != "f":
            return ufunc(x, y)
        x, y = asarray(x, d), asarray(y, d)
        quotient = asarray(rounding(np.divide(x, y)))
        wide = asarray(np.multiply(quotient, y, dtype=np.float64))
        np.subtract(x, wide, out=wide)
        like = y if sign_of_divisor else x
        wrong = np.signbit(wide) != np.signbit(like)
        wrong &= wide != 0
        if wrong.any():
            wide += np.where(wrong, np.copysign(y, like), np.float32(0))
        out = np.copysign(wide.astype(d), like)
        special = ~(np.abs(quotient) < EXACT) | (wide != wide)
        if special.any():
            x, y = np.broadcast_arrays(x, y)
            out[special] = ufunc(x[special], y[special])
        return out

    return remainder


fmod: Final = large_in_blocks(binary_kernel(np.fmod), _by_quotient(np.fmod, np.trunc, False))
"""The remainder with the sign of the dividend."""
remainder: Final = large_in_blocks(binary_kernel(np.remainder), _by_quotient(np.remainder, np.floor, True))
"""The remainder with the sign of the divisor."""
