"""Gamma and Dirichlet numbers: SciPy's quantile of a word of NumPy's Philox, and a quadrature for the derivative.

The generator and the rules are those of the random-number specification, sections 2, 4 and 17.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.draws import seed_and_offset
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]
special: Final[Any] = import_module("scipy.special")  # it has no types


def _logarithms(concentration: Array, seed: int, offset: int) -> Array:
    a = concentration.astype(np.float64)
    words = np.random.Philox(key=seed, counter=offset).random_raw(a.size)
    u = np.maximum((words >> np.uint64(11)).astype(np.float64) * 2.0**-53, 2.0**-54).reshape(a.shape)
    with np.errstate(all="ignore"):
        quantile = np.where(u < 0.5, special.gammaincinv(a, u), special.gammainccinv(a, 1 - u))
        first = (np.log(u) + special.gammaln(a + 1)) / a
        out = np.where(first < -36, first, np.log(quantile))
    certain = np.where(a == 0, -np.inf, np.where(a == np.inf, np.inf, np.nan))
    return np.where((a > 0) & np.isfinite(a), out, certain)


@reference("random_log_gamma", rounded_draws=True)
def logarithms(concentration: Array, seed: int, offset: int) -> Array:
    """Invert the distribution function."""
    return _logarithms(concentration, seed, offset).astype(concentration.dtype)


def _slope(a: float, log: float) -> float:
    """Return the integral of the score over the nearer tail, divided by the density."""
    x, mean = math.exp(log), float(special.digamma(a))
    sign = -1 if x <= max(a, 1.0) else 1

    def integrand(w: float) -> float:
        step = sign * min(w, 300.0)
        return sign * (log + step - mean) * math.exp(a * step - x * math.expm1(step))

    ranges = ((0.0, 1.0), (1.0, 10.0), (10.0, math.inf if sign < 0 else 20.0))
    integrate = import_module("scipy.integrate")  # here, since few runs need it and it takes half a second
    return float(sum(integrate.quad(integrand, *ends, epsabs=0, epsrel=1e-12, limit=200)[0] for ends in ranges))


@reference("log_gamma_slope")
def slopes(concentration: Array, logarithm: Array) -> Array:
    """Integrate the derivative of the density numerically."""
    pairs = zip(concentration.flat, logarithm.flat)
    out = np.array([_slope(float(a), float(log)) for a, log in pairs], np.float64)
    return out.reshape(concentration.shape).astype(concentration.dtype)


@reference("_standard_gamma", as_given=True)
def gamma_numbers(x: Array, generator: Any = None) -> Array:
    """Draw by section 17 of the specification."""
    return np.exp(_logarithms(x, *seed_and_offset(generator))).astype(x.dtype)


@reference("_sample_dirichlet", as_given=True)
def dirichlet_numbers(x: Array, generator: Any = None) -> Array:
    """Normalize gamma numbers."""
    logarithms = _logarithms(x, *seed_and_offset(generator))
    return np.asarray(special.softmax(logarithms, -1)).astype(x.dtype)
