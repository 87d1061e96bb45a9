"""Bessel functions from their integrals by the trapezoidal rule, in 80 bits.

The integrands are periodic or decay double-exponentially, so the rule converges exponentially (Trefethen and Weideman,
The Exponentially Convergent Trapezoidal Rule, SIAM Review 56, 2014). Source of the integrals: NIST Digital Library of
Mathematical Functions, 10.9.2, 10.32.3 and 10.32.9. Y is summed as its power series, 10.8.1. Large arguments are left
to SciPy, except the limits, where its formulas give NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.pointwise_error import PI, in_long_double
from candelabra_conformance.references.pointwise_gamma import EULER
from candelabra_conformance.references.promoted import unless_many
from candelabra_conformance.references.registry import references

Array = np.ndarray[Any, Any]
Integral = Callable[[Array, int], Array]
sp: Final[Any] = import_module("scipy.special")  # it has no types
FAR: Final = 30.0
"""SciPy computes arguments of at least this size, and K also for arguments below the inverse."""
LEAST: Final = 1e-30
"""For smaller arguments K0 is ``log(2 / x) - gamma`` and K1 is ``1 / x`` to 80 bits. SciPy halves x, which may give
0."""
SUMMED: Final = 8.0
"""The largest argument for which Y is summed: the largest term is a few hundred, and 53 of 64 bits are required."""
LOG_2: Final = np.log(np.longdouble(2))
STEP: Final = 0.125
"""The step of the rule for K, whose error is about exp(-pi**2 / step)."""


def _mean(x: Array, function: Callable[[Any], Array]) -> Array:
    """Return the mean over half a period, with more points than the frequencies of the integrand."""
    points = int(np.max(np.abs(x), initial=0)) + 30
    total = (function(np.longdouble(0)) + function(PI)) / 2
    for k in range(1, points):
        total = total + function(PI * k / points)
    return total / points


def _near_zero(x: Array, n: int, sign: int) -> Array:
    """Return J (sign -1) or I (sign 1) for numbers up to 1, by 10.2.2 and 10.25.2, which keep all digits of small
    results."""
    z = sign * x * x / 4
    more = np.zeros_like(x)
    for k in range(12, 0, -1):
        more = z / (k * (k + n)) * (1 + more)
    return (x / 2 if n else 1) * (1 + more)


def _j(x: Array, n: int) -> Array:
    mean = _mean(x, lambda t: np.cos(n * t - x * np.sin(t)))
    return np.where(np.abs(x) < 1, _near_zero(x, n, -1), mean)


def _ie(x: Array, n: int) -> Array:
    """Return ``exp(-abs(x)) I(x)``."""
    size = np.abs(x)
    mean = _mean(x, lambda t: np.exp(size * (np.cos(t) - 1)) * np.cos(n * t))
    far = mean * np.sign(x) if n else mean
    return np.where(size < 1, _near_zero(x, n, 1) * np.exp(-size), far)


def _ke(x: Array, n: int) -> Array:
    """Return ``exp(x) K(x)`` for x between 1/30 and 30: at cosh(t) = 1800 the integrand is below the last digit."""
    total = np.full_like(x, 0.5)
    for k in range(1, int(8.2 / STEP)):
        t = np.longdouble(k * STEP)
        total = total + np.exp(-x * (np.cosh(t) - 1)) * np.cosh(n * t)
    return total * STEP


def _least_k(x: Array, n: int) -> Array:
    """Return K, which equals ``exp(x) K``, for numbers up to ``LEAST``: the first terms of DLMF 10.31.1 and 10.31.2."""
    with np.errstate(divide="ignore", over="ignore"):
        out: Array = 1 / x if n else LOG_2 - np.log(x) - EULER
    return out


def _y(x: Array, n: int) -> Array:
    """Return Y for numbers from 0 to 8, of order 0 or 1."""
    quarter = -x * x / 4
    term = np.ones_like(x) if n == 0 else x / 2  # (-x**2 / 4)**k (x / 2)**n / (k! (n + k)!)
    first, digammas = np.zeros_like(x), np.zeros_like(x)
    harmonic = n - 2 * EULER  # digamma(k + 1) + digamma(n + k + 1)
    for k in range(1, 40):
        first, digammas = first + term, digammas + harmonic * term
        term = term * quarter / (k * (n + k))
        harmonic = harmonic + np.longdouble(1) / k + np.longdouble(1) / (n + k)
    pole = 2 / x if n else 0
    out: Array = (2 * np.log(x / 2) * first - digammas - pole) / PI
    return out


def _near(integral: Integral, n: int, scipys: Any, scale: int = 0, positive: bool = False) -> Callable[[Any], Any]:
    """Use the integral in the range where it converges fast, times ``exp(scale * abs(x))``, and SciPy's function
    elsewhere."""

    def function(x: Array) -> Any:
        near = ((x > 1 / FAR) | (not positive)) & (np.abs(x) < FAR)
        at = np.where(near, x, 1)
        value = integral(at, n) * (np.exp(scale * np.abs(at)) if scale else 1)
        return np.where(near, value, scipys(x.astype(np.float64)))

    return unless_many(scipys)(in_long_double(function))


def _summed(n: int, scipys: Any) -> Callable[[Any], Any]:
    """Use the series of Y in the range where it has the digits, and SciPy's function elsewhere."""

    def function(x: Array) -> Any:
        near = (x > 0) & (x < SUMMED)
        with np.errstate(over="ignore"):
            value = _y(np.where(near, x, 1), n)
        return np.where(near, value, scipys(x.astype(np.float64)))

    return in_long_double(function)


def _ending(scipys: Any, lower: float, upper: float) -> Callable[[Any], Any]:
    """Call SciPy's function in float64, with its limits at the infinities."""
    return lambda x: np.where(x == np.inf, upper, np.where(x == -np.inf, lower, scipys(x)))


def _starting(scipys: Any, n: int) -> Callable[[Any], Any]:
    """Call SciPy's function in float64, with the limits of K for the smallest numbers."""

    def function(x: Array) -> Any:
        least = (x > 0) & (x < LEAST)
        return np.where(least, _least_k(np.where(least, x, 1), n), scipys(x))

    return function


references(
    {
        "special_bessel_j0": _near(_j, 0, _ending(sp.j0, 0, 0)),
        "special_bessel_j1": _near(_j, 1, _ending(sp.j1, -0.0, 0)),
        "special_bessel_y0": _summed(0, _ending(sp.y0, np.nan, 0)),
        "special_bessel_y1": _summed(1, _ending(sp.y1, np.nan, 0)),
        "i0": _near(_ie, 0, _ending(sp.i0, np.inf, np.inf), 1),
        "special_i1": _near(_ie, 1, _ending(sp.i1, -np.inf, np.inf), 1),
        "special_i0e": _near(_ie, 0, sp.i0e),
        "special_i1e": _near(_ie, 1, sp.i1e),
        "special_modified_bessel_k0": _near(_ke, 0, _starting(sp.k0, 0), -1, positive=True),
        "special_modified_bessel_k1": _near(_ke, 1, _starting(sp.k1, 1), -1, positive=True),
        "special_scaled_modified_bessel_k0": _near(_ke, 0, _starting(sp.k0e, 0), positive=True),
        "special_scaled_modified_bessel_k1": _near(_ke, 1, _starting(sp.k1e, 1), positive=True),
    },
    extended=True,
)
