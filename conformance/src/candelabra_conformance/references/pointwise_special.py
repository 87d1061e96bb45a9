"""Element by element: special functions by SciPy, in float64."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.promoted import of_floats
from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]
sp: Final[Any] = import_module("scipy.special")  # which has no types


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's functions know float64; integers come through float32, as everywhere."""

    def double(*args: Any) -> Any:
        return function(*[np.asarray(a, np.float64) for a in args])

    return of_floats(double)


references(
    {
        name: in_double(function) for name, function in {
            "digamma": sp.psi, "erf": sp.erf, "erfc": sp.erfc, "erfinv": sp.erfinv, "i0": sp.i0, "igamma": sp.gammainc,
            "igammac": sp.gammaincc, "special_bessel_j0": sp.j0, "special_bessel_j1": sp.j1,
            "special_bessel_y0": sp.y0, "special_bessel_y1": sp.y1, "special_erfcx": sp.erfcx, "special_i0e": sp.i0e,
            "special_i1": sp.i1, "special_i1e": sp.i1e, "special_log_ndtr": sp.log_ndtr,
            "special_modified_bessel_k0": sp.k0, "special_modified_bessel_k1": sp.k1, "special_ndtr": sp.ndtr,
            "special_ndtri": sp.ndtri, "special_scaled_modified_bessel_k0": sp.k0e,
            "special_scaled_modified_bessel_k1": sp.k1e, "special_zeta": sp.zeta,
        }.items()
    }
)  # fmt: skip


@reference("lgamma")
@in_double
def lgamma(x: Array) -> Any:
    """SciPy's, but for minus infinity, where C says infinity."""
    return np.where(x == -np.inf, np.inf, sp.gammaln(x))


@reference("special_airy_ai")
@in_double
def airy(x: Array) -> Any:
    """SciPy's, but for large numbers, of which it gives NaN: Ai(110) is far below the smallest number."""
    return np.where(x > 110, 0.0, sp.airy(np.minimum(x, 110))[0])


@reference("special_airy_ai_slope")
@in_double
def airy_slope(x: Array) -> Any:
    """The derivative of Airy's function."""
    return np.where(x > 110, 0.0, sp.airy(np.minimum(x, 110))[1])


@reference("special_spherical_bessel_j0")
@in_double
def spherical_bessel(x: Array) -> Any:
    """``sin(x) / x``, 1 at 0 and 0 at the infinities."""
    limited = np.where((x == 0) | np.isinf(x), 1.0, x)
    return np.where(x == 0, 1.0, np.where(np.isinf(x), 0.0, np.sin(limited) / limited))
