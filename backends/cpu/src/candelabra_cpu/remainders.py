"""Remainders of float32 in vectorised passes: C's ``fmod``, 20 ns an element, is not needed for ordinary quotients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from candelabra_cpu.blocks import large_in_blocks
from candelabra_cpu.quiet import asarray, ndarray, quiet2

Kernel = Callable[..., Any]
EXACT: Final = float(1 << 24)
"""Up to here a quotient is a whole number of float32, and its product with the divisor is exact in float64."""


def _by_quotient(ufunc: np.ufunc, whole: np.ufunc, divisor_signs: bool) -> Kernel:
    """``x - whole(x / y) * y``, exactly.

    The rounded quotient is never cut too low, and too high by one at most: then the remainder has the wrong sign, and a
    divisor more is added. Large quotients, infinities and NaN go to ``ufunc``.
    """

    def remainder(x: Any, y: Any) -> Any:
        d = x.dtype if x.__class__ is ndarray else y.dtype
        if d.char != "f":
            return ufunc(x, y)
        x, y = asarray(x, d), asarray(y, d)
        quotient = asarray(whole(np.divide(x, y)))
        wide = asarray(np.multiply(quotient, y, dtype=np.float64))
        np.subtract(x, wide, out=wide)
        like = y if divisor_signs else x
        wrong = np.signbit(wide) != np.signbit(like)
        wrong &= wide != 0
        if wrong.any():
            wide += np.where(wrong, np.copysign(y, like), np.float32(0))
        out = np.copysign(wide.astype(d), like)
        odd = ~(np.abs(quotient) < EXACT) | (wide != wide)
        if odd.any():
            x, y = np.broadcast_arrays(x, y)
            out[odd] = ufunc(x[odd], y[odd])
        return out

    return remainder


fmod: Final = large_in_blocks(quiet2(np.fmod), _by_quotient(np.fmod, np.trunc, False))
"""The remainder with the sign of the dividend."""
remainder: Final = large_in_blocks(quiet2(np.remainder), _by_quotient(np.remainder, np.floor, True))
"""The remainder with the sign of the divisor."""
