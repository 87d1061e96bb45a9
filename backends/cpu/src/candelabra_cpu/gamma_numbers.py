"""Logarithms of gamma numbers by inversion, the quantile of a uniform number, and their derivatives.

Specification: ``docs/notes/0001-random-numbers.md``, section 17. SciPy is imported at the first draw.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu import philox
from candelabra_cpu.numpy_kernels import numpy_kernel

SERIES_BELOW = -36.0
"""The logarithm below which the first term of the distribution function's series is exact to rounding."""
BLOCK = 256
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


def _slopes(a: Any, log: Any, nodes: Any, weights: Any) -> Any:
    """Return the derivatives for concentrations and logarithms in columns, by the body's quadrature."""
    from scipy.special import digamma

    x = np.exp(log)
    with np.errstate(all="ignore"):  # -inf, inf and NaN
        below, above = x - a, x - a + np.sqrt(x)
        lower = x <= np.maximum(a, 1.0)
        width = 1 / np.where(lower, np.maximum(-below, np.minimum(a, np.sqrt(a))), above)
        step = width * nodes
        step = np.where(lower, -step, np.minimum(step, 20.0))
        change = np.expm1(step)
        factor = np.where(lower, digamma(a + 1) - log, log - digamma(a) + step)
        factor -= np.where(lower, x / a * step * (change + 1), 0.0)
        return width[:, 0] * ((factor * np.exp(a * step - x * change)) @ weights)


def log_gamma_slope(concentration: Any, logarithm: Any) -> Any:
    """The derivative of a gamma number's logarithm in the concentration, in float64 and in blocks that fit a cache."""
    a, log = (v.astype(np.float64).reshape(-1, 1) for v in (concentration, logarithm))
    out = np.empty(a.size)
    rule = FINE if concentration.dtype == np.float64 else COARSE
    for start in range(0, a.size, BLOCK):
        block = slice(start, start + BLOCK)
        out[block] = _slopes(a[block], log[block], *rule)
    return out.astype(concentration.dtype).reshape(concentration.shape)


KERNELS: dict[str, Any] = {
    "random_log_gamma": numpy_kernel(random_log_gamma),
    "log_gamma_slope": numpy_kernel(log_gamma_slope),
}
