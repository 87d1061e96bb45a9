"""The error function and the normal distribution and their variants, from series and continued fractions in 80 bits.

Source: NIST Digital Library of Mathematical Functions, 7.6.2 (series), 7.9.1 (continued fraction). The inverses are
SciPy's, corrected by a step of Newton's method on these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.promoted import of_floats, unless_many
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]
sp: Final[Any] = import_module("scipy.special")  # it has no types
BORDER: Final = 1.5
"""The smallest number for which the continued fraction is used."""
TERMS: Final = 60
"""The number of terms of the series below the border, for 64 bits: the terms are (2 x**2)**n / (2 n + 1)!!."""
STEPS: Final = 200
"""The number of steps of the continued fraction above the border: it converges as exp(-2 x sqrt(2 n))."""
PI: Final = 4 * np.arctan(np.longdouble(1))
HALF: Final = np.sqrt(np.longdouble(0.5))


def in_long_double(function: Callable[[Array], Any]) -> Callable[[Any], Any]:
    """Return the function computed in ``np.longdouble``, for integers too."""

    def extended(x: Any) -> Any:
        return function(np.asarray(x, np.longdouble))

    return of_floats(extended)


def _series(x: Array) -> Array:
    """Return erf for numbers up to the border: ``2/sqrt(pi) exp(-x**2) x (1 + 2x**2/3 + (2x**2)**2/(3*5) + …)``."""
    term = total = np.ones_like(x)
    for n in range(1, TERMS):
        term = term * (2 * x * x / (2 * n + 1))
        total = total + term
    out: Array = 2 / np.sqrt(PI) * np.exp(-x * x) * x * total
    return out


def _fraction(x: Array) -> Array:
    """Return erfcx for numbers above the border: ``1/sqrt(pi) / (x + (1/2) / (x + (2/2) / (x + (3/2) / …)))``."""
    below = x
    for n in range(STEPS, 0, -1):
        below = x + np.longdouble(n) / 2 / below
    out: Array = 1 / (np.sqrt(PI) * below)
    return out


def erf_of(x: Array) -> Any:
    """Return the error function."""
    size = np.abs(x)
    low, high = np.where(size < BORDER, x, 0), np.where(size < BORDER, BORDER, size)
    return np.where(size < BORDER, _series(low), np.copysign(1 - np.exp(-high * high) * _fraction(high), x)) + 0 * x


def erfcx_of(x: Array) -> Any:
    """Return ``exp(x**2) erfc(x)``."""
    size = np.abs(x)
    low, high = np.where(size < BORDER, x, 0), np.where(size < BORDER, BORDER, size)
    near, far = np.exp(low * low) * (1 - _series(low)), _fraction(high)
    mirrored = 2 * np.exp(np.minimum(high, 200) ** 2) - far
    return np.where(x != x, x, np.where(size < BORDER, near, np.where(x > 0, far, mirrored)))


def erfc_of(x: Array) -> Any:
    """Return ``1 - erf(x)``."""
    tail = np.exp(-(np.maximum(x, BORDER) ** 2)) * _fraction(np.maximum(x, BORDER))
    low = np.where(x < BORDER, x, 0)
    return np.where(x != x, x, np.where(x < BORDER, 1 - erf_of(low), tail))


@reference("erf", extended=True)
@unless_many(sp.erf)
@in_long_double
def erf(x: Array) -> Any:
    """Return the error function."""
    return np.where(np.isinf(x), np.sign(x), erf_of(np.where(np.isinf(x), 0, x)))


@reference("erfc", extended=True)
@unless_many(sp.erfc)
@in_long_double
def erfc(x: Array) -> Any:
    """Return ``1 - erf(x)``, with x limited to the range where the result is not 0."""
    return erfc_of(np.clip(x, -200, 200))


@reference("special_erfcx", extended=True)
@unless_many(sp.erfcx)
@in_long_double
def erfcx(x: Array) -> Any:
    """Return ``exp(x**2) erfc(x)``."""
    return erfcx_of(x)


@reference("special_ndtr", extended=True)
@unless_many(sp.ndtr)
@in_long_double
def ndtr(x: Array) -> Any:
    """Return the normal distribution function."""
    return erfc_of(np.clip(-x * HALF, -200, 200)) / 2


@reference("special_log_ndtr", extended=True)
@unless_many(sp.log_ndtr)
@in_long_double
def log_ndtr(x: Array) -> Any:
    """Return the logarithm of ndtr: below -1 from erfcx, which does not underflow."""
    left, right = np.minimum(x, -1), np.clip(x, -1, 200)
    low = np.log(erfcx_of(-left * HALF) / 2) - left * left / 2
    return np.where(x != x, x, np.where(x < -1, low, np.log1p(-erfc_of(right * HALF) / 2)))


@reference("erfinv", extended=True)
@unless_many(sp.erfinv)
@in_long_double
def erfinv(p: Array) -> Any:
    """Return the x with ``erf(x) = p``: near 1 from the distance to 1, which is exact."""
    start = np.asarray(sp.erfinv(p.astype(np.float64)), np.longdouble)
    y = np.where(np.isfinite(start), np.abs(start), 0)
    size = np.where(np.isfinite(start), np.abs(p), 0)
    miss = np.where(size < 0.5, erf_of(y) - size, 1 - size - erfc_of(y))
    return np.where(np.isfinite(start), np.copysign(y - miss * np.sqrt(PI) / 2 * np.exp(y * y), p), start)


@reference("special_ndtri", extended=True)
@unless_many(sp.ndtri)
@in_long_double
def ndtri(p: Array) -> Any:
    """Return the x with ``ndtr(x) = p``: in the upper half by symmetry."""
    low = np.where(p > 0.5, 1 - p, p)
    start = np.asarray(sp.ndtri(low.astype(np.float64)), np.longdouble)
    y = np.where(np.isfinite(start), start, 0)
    better = y - (erfc_of(-y * HALF) / 2 - low) * np.sqrt(2 * PI) * np.exp(y * y / 2)
    found = np.where(np.isfinite(start), better, start)
    return np.where(p > 0.5, -found, found)
