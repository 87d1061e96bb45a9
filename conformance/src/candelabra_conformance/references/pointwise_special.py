"""Pointwise special functions by SciPy, in float64; this package has no other implementation of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.promoted import of_floats
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]
sp: Final[Any] = import_module("scipy.special")  # it has no types


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """Convert for SciPy's functions, which accept float64; integers are converted to float32 first, as in the
    operators."""

    def double(*args: Any) -> Any:
        return function(*[np.asarray(a, np.float64) for a in args])

    return of_floats(double)


@reference("special_airy_ai")
@in_double
def airy(x: Array) -> Any:
    """Call SciPy's function, except for large numbers, where it gives NaN: Ai(110) is far below the smallest number."""
    return np.where(x > 110, 0.0, sp.airy(np.minimum(x, 110))[0])


@reference("special_airy_ai_slope")
@in_double
def airy_slope(x: Array) -> Any:
    """Return the derivative of Airy's function."""
    return np.where(x > 110, 0.0, sp.airy(np.minimum(x, 110))[1])


@reference("special_spherical_bessel_j0")
@in_double
def spherical_bessel(x: Array) -> Any:
    """Return ``sin(x) / x``, 1 at 0 and 0 at the infinities."""
    limited = np.where((x == 0) | np.isinf(x), 1.0, x)
    return np.where(x == 0, 1.0, np.where(np.isinf(x), 0.0, np.sin(limited) / limited))
