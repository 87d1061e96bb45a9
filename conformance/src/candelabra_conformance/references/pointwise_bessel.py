"""Bessel functions from their integrals by the trapezoidal rule, in 80 bits.

The integrands are periodic, or fall off double-exponentially: the rule converges exponentially (Trefethen and
Weideman, The Exponentially Convergent Trapezoidal Rule, SIAM Review 56, 2014). Source of the integrals: NIST Digital
Library of Mathematical Functions, 10.9.2, 10.32.3 and 10.32.9. Far out SciPy answers.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.pointwise_error import PI, in_long_double
from candelabra_conformance.references.promoted import unless_many
from candelabra_conformance.references.registry import references

Array = np.ndarray[Any, Any]
Integral = Callable[[Array, int], Array]
sp: Final[Any] = import_module("scipy.special")  # which has no types
FAR: Final = 30.0
"""From here on SciPy answers, and from the inverse down, where 64 bits of a sum are none of a small result."""
STEP: Final = 0.125
"""Of K's rule: its error is about exp(-pi**2 / step)."""


def _mean(x: Array, function: Callable[[Any], Array]) -> Array:
    """The mean over half a period, with more points than the frequencies that x brings."""
    points = int(np.max(np.abs(x), initial=0)) + 30
    total = (function(np.longdouble(0)) + function(PI)) / 2
    for k in range(1, points):
        total = total + function(PI * k / points)
    return total / points


def _j(x: Array, n: int) -> Array:
    return _mean(x, lambda t: np.cos(n * t - x * np.sin(t)))


def _ie(x: Array, n: int) -> Array:
    """``exp(-abs(x)) I(x)``."""
    size = np.abs(x)
    mean = _mean(x, lambda t: np.exp(size * (np.cos(t) - 1)) * np.cos(n * t))
    return mean * np.sign(x) if n else mean


def _ke(x: Array, n: int) -> Array:
    """``exp(x) K(x)`` of x between 1/30 and 30: the integrand has fallen below the smallest digit at cosh(t) = 1800."""
    total = np.full_like(x, 0.5)
    for k in range(1, int(8.2 / STEP)):
        t = np.longdouble(k * STEP)
        total = total + np.exp(-x * (np.cosh(t) - 1)) * np.cosh(n * t)
    return total * STEP


def _near(integral: Integral, n: int, scipys: Any, scale: int = 0, positive: bool = False) -> Callable[[Any], Any]:
    """The integral where it is quick, times ``exp(scale * abs(x))``, and SciPy's function elsewhere."""

    def function(x: Array) -> Any:
        near = (np.abs(x) > 1 / FAR) & (np.abs(x) < FAR) & ((x > 0) | (not positive))
        at = np.where(near, x, 1)
        value = integral(at, n) * (np.exp(scale * np.abs(at)) if scale else 1)
        return np.where(near, value, scipys(x.astype(np.float64)))

    return unless_many(scipys)(in_long_double(function))


references(
    {
        "special_bessel_j0": _near(_j, 0, sp.j0),
        "special_bessel_j1": _near(_j, 1, sp.j1),
        "i0": _near(_ie, 0, sp.i0, 1),
        "special_i1": _near(_ie, 1, sp.i1, 1),
        "special_i0e": _near(_ie, 0, sp.i0e),
        "special_i1e": _near(_ie, 1, sp.i1e),
        "special_modified_bessel_k0": _near(_ke, 0, sp.k0, -1, positive=True),
        "special_modified_bessel_k1": _near(_ke, 1, sp.k1, -1, positive=True),
        "special_scaled_modified_bessel_k0": _near(_ke, 0, sp.k0e, positive=True),
        "special_scaled_modified_bessel_k1": _near(_ke, 1, sp.k1e, positive=True),
    },
    extended=True,
)
