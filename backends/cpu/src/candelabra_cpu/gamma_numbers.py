"""Logarithms of gamma numbers by inversion, the quantile of a uniform number, and their derivatives.

Specification: ``docs/notes/0001-random-numbers.md``, section 17. SciPy is imported at the first draw.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from candelabra_cpu import philox
from candelabra_cpu.numpy_kernels import numpy_kernel

SERIES_BELOW = -36.0
"""The logarithm below which the first term of the distribution function's series is exact to rounding."""
LARGE = 1e6
"""Numbers above need ``expm1`` in the integrand; below, ``exp - 1`` times the number has an error below 1e-9."""
BLOCK = 512
"""The elements whose integrands are evaluated together."""


def _quadrature(first: float, last: float, count: int) -> tuple[Any, Any]:
    """Return the nodes and weights of the trapezoidal rule after the substitution of the operator's body."""
    grid = np.linspace(first, last, count)
    nodes = np.exp(grid - np.exp(-grid))
    return nodes, (grid[1] - grid[0]) * nodes * (1 + np.exp(-grid))


FINE, COARSE = _quadrature(-3.8, 4.2, 144), _quadrature(-3.2, 4.0, 64)
"""For float64, and for narrower dtypes, with an error below 1e-7."""


def log_quantile(concentration: Any, u: Any) -> Any:
    """Return the logarithm of the gamma quantile of ``u``, for positive finite concentrations in float64."""
    from scipy.special import gammainccinv, gammaincinv, gammaln

    out = (np.log(u) + gammaln(concentration + 1)) / concentration
    inverted = out >= SERIES_BELOW
    lower, upper = inverted & (u < 0.5), inverted & (u >= 0.5)
    out[lower] = np.log(gammaincinv(concentration[lower], u[lower]))
    out[upper] = np.log(gammainccinv(concentration[upper], 1 - u[upper]))
    return out


def random_log_gamma(concentration: Any, seed: int, offset: int) -> Any:
    """Logarithms of gamma numbers of rate 1."""
    u = np.asarray(philox.uniform(seed, offset, concentration.shape, np.dtype(np.float64))).reshape(-1)
    u = np.maximum(u, 2.0**-54)
    wide = concentration.astype(np.float64).reshape(-1)
    out = np.where(wide == 0, -np.inf, np.where(wide == np.inf, np.inf, np.nan))
    drawn = np.flatnonzero((wide > 0) & np.isfinite(wide))
    out[drawn] = log_quantile(wide[drawn], u[drawn])
    return out.astype(concentration.dtype).reshape(concentration.shape)


class _Integrand(NamedTuple):
    """The integrand ``(base + step * (upper - ratio * exp(step))) * exp(a * step - x * (exp(step) - 1))`` at the steps
    ``width * nodes``: one form for both tails. A row of each array is one number.
    """

    a: Any
    x: Any
    width: Any
    base: Any
    upper: Any
    ratio: Any

    def integrals(self, nodes: Any, weights: Any, double: bool) -> Any:
        """Return the integrals, as sums of three; ``double``: with the digits of float64."""
        step = self.width * nodes
        np.minimum(step, 20.0, out=step)  # beyond, the second exponential is 0
        growth = np.exp(step)
        change = growth - 1 if not double and np.all(self.x <= LARGE) else np.expm1(step)
        change *= self.x
        step *= self.a
        step -= change
        density = np.exp(step, out=step)
        first_moments = weights * nodes
        zeroth, first = (density @ np.stack([weights, first_moments], 1)).T
        growth *= density
        grown = growth @ first_moments
        width, base, upper, ratio = (column[:, 0] for column in self[2:])
        return base * zeroth + width * (upper * first - ratio * grown)


def _integrand(a: Any, log: Any) -> _Integrand:
    """Return the integrand of the operator's body for concentrations and logarithms in columns."""
    from scipy.special import digamma

    x = np.exp(log)
    lower = x <= np.maximum(a, 1.0)
    width = 1 / np.where(lower, np.minimum(x - a, -np.minimum(a, np.sqrt(a))), x - a + np.sqrt(x))
    base = digamma(np.where(lower, a + 1, a)) - log
    return _Integrand(a, x, width, np.where(lower, base, -base), np.where(lower, 0.0, 1.0), np.where(lower, x / a, 0.0))


def log_gamma_slope(concentration: Any, logarithm: Any) -> Any:
    """The derivative of a gamma number's logarithm in the concentration, in float64 and in blocks that fit a cache."""
    a, log = (v.astype(np.float64).reshape(-1, 1) for v in (concentration, logarithm))
    out = np.empty(a.size)
    double = concentration.dtype == np.float64
    rule = FINE if double else COARSE
    with np.errstate(all="ignore"):  # -inf, inf and NaN
        integrand = _integrand(a, log)
        for start in range(0, a.size, BLOCK):
            block = slice(start, start + BLOCK)
            out[block] = _Integrand(*[column[block] for column in integrand]).integrals(*rule, double)
        out *= np.abs(integrand.width[:, 0])
        return out.astype(concentration.dtype).reshape(concentration.shape)


KERNELS: dict[str, Any] = {
    "random_log_gamma": numpy_kernel(random_log_gamma),
    "log_gamma_slope": numpy_kernel(log_gamma_slope),
}
