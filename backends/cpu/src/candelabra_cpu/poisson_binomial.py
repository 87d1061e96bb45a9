"""Poisson and binomial numbers by inversion: the smallest k whose cumulative distribution exceeds a uniform number.

Specification: ``docs/notes/0001-random-numbers.md``, sections 15 and 16. SciPy is imported at the first draw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from candelabra_cpu import philox
from candelabra_cpu.numpy_kernels import numpy_kernel

SUM_UP_TO = 16.0
"""The rate up to which the probabilities are summed term by term. Above it, the distribution function is evaluated."""
EXPAND_FROM = 1e4
"""The variance from which the expansion of the quantile is rounded to the result; its error is far below 1."""
MAX_STEPS = 10000
"""A bound on the search steps from the first guess; it is never reached."""


def invert_cdf_by_table(u: Any, guess: Any, cdf: Callable[[Any, Any], Any], highest: float) -> Any | None:
    """Like :func:`invert_cdf`, for elements that share one distribution, which is tabulated.

    Returns None if the table is not ascending because of rounding, or does not cover all of ``u``.
    """
    first, last = max(guess.min() - 2, 0.0), min(guess.max() + 2, highest)
    if not last - first < u.size:
        return None
    table = cdf(np.arange(first, last + 1), 0)
    if (np.diff(table) < 0).any() or (first and table[0] > u.min()) or (last < highest and table[-1] <= u.max()):
        return None
    return np.minimum(first + np.searchsorted(table, u, side="right"), highest)


def invert_cdf(u: Any, guess: Any, cdf: Callable[[Any, Any], Any], highest: Any) -> Any:
    """Return the smallest integers k in [0, highest] with ``cdf(k, i) > u[i]``, by a linear search from ``guess``."""
    k = np.clip(guess, 0, highest)
    active = np.flatnonzero(k < highest)
    for _ in range(MAX_STEPS):
        active = active[(cdf(k[active], active) <= u[active]) & (k[active] < highest[active])]
        if not active.size:
            break
        k[active] += 1
    active = np.flatnonzero(k > 0)
    for _ in range(MAX_STEPS):
        active = active[k[active] > 0]
        active = active[cdf(k[active] - 1, active) > u[active]]
        if not active.size:
            break
        k[active] -= 1
    return k


def _cornish_fisher(u: Any, mean: Any, variance: Any, skew: Any, excess: Any) -> Any:
    """Return approximate quantiles by the Cornish-Fisher expansion with skewness and excess kurtosis."""
    from scipy.special import ndtri

    z = ndtri(np.maximum(u, 2.0**-54))
    corrected = z + skew * (z * z - 1) / 6 + excess * (z**3 - 3 * z) / 24 - skew**2 * (2 * z**3 - 5 * z) / 36
    return np.rint(mean + np.sqrt(variance) * corrected)


def _sum_poisson(u: Any, rate: Any) -> Any:
    """Return Poisson numbers by adding up probabilities until their sum exceeds ``u``."""
    k = np.zeros_like(u)
    term = np.exp(-rate)
    total = term.copy()
    active = np.flatnonzero(total <= u)
    rate, term, total, target = rate[active], term[active], total[active], u[active]
    count = 0
    while active.size and count < MAX_STEPS:
        count += 1
        term = term * rate / count
        total = total + term
        k[active] = count
        below = total <= target
        active, rate, term, total, target = active[below], rate[below], term[below], total[below], target[below]
    return k


def _all_equal(values: Any) -> bool:
    return bool(values.size) and values.min() == values.max()


def random_poisson(rate: Any, seed: int, offset: int) -> Any:
    """Poisson numbers. Raises ``ValueError`` for a negative rate."""
    from scipy.special import gammaincc

    if (rate < 0).any():
        raise ValueError(f"poisson() expects rates >= 0, got {rate.min()}")
    u = np.asarray(philox.uniform(seed, offset, rate.shape, np.dtype(np.float64))).reshape(-1)
    wide = rate.astype(np.float64).reshape(-1)
    out = np.where(np.isfinite(wide), 0.0, wide)
    small = np.flatnonzero(wide <= SUM_UP_TO)
    out[small] = _sum_poisson(u[small], wide[small])
    large = np.flatnonzero((wide > SUM_UP_TO) & np.isfinite(wide))
    if large.size:
        mean, uniform = wide[large], u[large]
        guess = _cornish_fisher(uniform, mean, mean, 1 / np.sqrt(mean), 1 / mean)
        inexact = np.flatnonzero(mean < EXPAND_FROM)
        rates = mean[inexact]

        def cdf(k: Any, i: Any) -> Any:
            return gammaincc(k + 1, rates[i])

        k = invert_cdf_by_table(uniform[inexact], guess[inexact], cdf, np.inf) if _all_equal(rates) else None
        if k is None:
            k = invert_cdf(uniform[inexact], guess[inexact], cdf, np.full(inexact.shape, np.inf))
        guess[inexact] = k
        out[large] = guess
    return out.astype(rate.dtype).reshape(rate.shape)


def random_binomial(count: Any, prob: Any, seed: int, offset: int) -> Any:
    """Binomial numbers. For probabilities above 1/2 the failures are counted."""
    from scipy.special import betainc

    u = np.asarray(philox.uniform(seed, offset, count.shape, np.dtype(np.float64))).reshape(-1)
    n, p = np.floor(count.astype(np.float64).reshape(-1)), prob.astype(np.float64).reshape(-1)
    out = np.where(np.isnan(n) | np.isnan(p), np.nan, np.where((n <= 0) | (p <= 0), 0.0, n))
    drawn = np.flatnonzero((n > 0) & (p > 0) & (p < 1))
    trials, chance, uniform = n[drawn], p[drawn], u[drawn]
    flipped = chance > 0.5
    success = np.where(flipped, 1 - chance, chance)
    variance = trials * success * (1 - success)
    skew, excess = (1 - 2 * success) / np.sqrt(variance), (1 - 6 * success * (1 - success)) / variance
    k = np.clip(_cornish_fisher(uniform, trials * success, variance, skew, excess), 0, trials)
    inexact = np.flatnonzero(variance < EXPAND_FROM)
    counts, failure = trials[inexact], 1 - success[inexact]

    def cdf(k: Any, i: Any) -> Any:
        return betainc(counts[i] - k, k + 1, failure[i])

    exact = None
    if _all_equal(counts) and _all_equal(failure):
        exact = invert_cdf_by_table(uniform[inexact], k[inexact], cdf, counts[0])
    k[inexact] = invert_cdf(uniform[inexact], k[inexact], cdf, counts) if exact is None else exact
    out[drawn] = np.where(flipped, trials - k, k)
    return out.astype(count.dtype).reshape(count.shape)


KERNELS: dict[str, Any] = {
    "random_poisson": numpy_kernel(random_poisson),
    "random_binomial": numpy_kernel(random_binomial),
}
