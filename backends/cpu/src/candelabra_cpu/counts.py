"""Poisson and binomial numbers by inversion: the smallest k whose distribution function exceeds a uniform number.

Sections 15 and 16 of the random-number specification. SciPy is imported when the first such number is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from candelabra_cpu import philox
from candelabra_cpu.parallel import split
from candelabra_cpu.quiet import quiet

SUMMED = 16.0
"""Up to this rate the probabilities are summed term by term; above, the distribution function is evaluated."""
EXPANDED = 1e4
"""From this variance on the expansion of the quantile is the number: its error is far below one."""
COST = 16
"""An incomplete gamma or beta function takes as long as so many other operations."""
STEPS = 10000
"""More steps from a first guess than ever occur."""


def inverted(u: Any, guess: Any, distribution: Callable[[Any, Any], Any], highest: Any) -> Any:
    """The smallest whole k in [0, highest] with ``distribution(k, which) > u``, searched from ``guess``."""
    parts = split(u.size, u.size * COST, lambda a, b: _searched(u[a:b], guess[a:b], distribution, highest[a:b], a))
    return np.concatenate(parts)


def tabled(u: Any, guess: Any, distribution: Callable[[Any, Any], Any], highest: float) -> Any | None:
    """As :func:`inverted` where all share one distribution: looked up in a table of it.

    None where rounding makes the table other than ascending, or where it does not reach as far as ``u``.
    """
    first, last = max(guess.min() - 2, 0.0), min(guess.max() + 2, highest)
    if not last - first < u.size:
        return None
    table = distribution(np.arange(first, last + 1), 0)
    if (np.diff(table) < 0).any() or (first and table[0] > u.min()) or (last < highest and table[-1] <= u.max()):
        return None
    return np.minimum(first + np.searchsorted(table, u, side="right"), highest)


def _searched(u: Any, guess: Any, distribution: Callable[[Any, Any], Any], highest: Any, start: int) -> Any:
    k = np.clip(guess, 0, highest)
    active = np.flatnonzero(k < highest)
    for _ in range(STEPS):
        active = active[(distribution(k[active], start + active) <= u[active]) & (k[active] < highest[active])]
        if not active.size:
            break
        k[active] += 1
    active = np.flatnonzero(k > 0)
    for _ in range(STEPS):
        active = active[k[active] > 0]
        active = active[distribution(k[active] - 1, start + active) > u[active]]
        if not active.size:
            break
        k[active] -= 1
    return k


def _guess(u: Any, mean: Any, variance: Any, skew: Any, excess: Any) -> Any:
    """The quantile by Cornish and Fisher's expansion: the normal one, bent by skewness and excess kurtosis."""
    from scipy.special import ndtri

    z = ndtri(np.maximum(u, 2.0**-54))
    bent = z + skew * (z * z - 1) / 6 + excess * (z**3 - 3 * z) / 24 - skew**2 * (2 * z**3 - 5 * z) / 36
    return np.rint(mean + np.sqrt(variance) * bent)


def _summed(u: Any, rate: Any) -> Any:
    """Term by term: what is left over of u after each probability."""
    k = np.zeros_like(u)
    term = np.exp(-rate)
    total = term.copy()
    active = np.flatnonzero(total <= u)
    rate, term, total, left = rate[active], term[active], total[active], u[active]
    count = 0
    while active.size and count < STEPS:
        count += 1
        term = term * rate / count
        total = total + term
        k[active] = count
        going = total <= left
        active, rate, term, total, left = active[going], rate[going], term[going], total[going], left[going]
    return k


def _alike(values: Any) -> bool:
    return bool(values.size) and values.min() == values.max()


def random_poisson(rate: Any, seed: int, offset: int) -> Any:
    """Poisson numbers; ValueError for negative rates."""
    from scipy.special import gammaincc

    if (rate < 0).any():
        raise ValueError("a rate is negative")
    u = np.asarray(philox.uniform(seed, offset, rate.shape, np.dtype(np.float64))).reshape(-1)
    wide = rate.astype(np.float64).reshape(-1)
    out = np.where(np.isfinite(wide), 0.0, wide)
    few = np.flatnonzero(wide <= SUMMED)
    out[few] = _summed(u[few], wide[few])
    many = np.flatnonzero((wide > SUMMED) & np.isfinite(wide))
    if many.size:
        mean, words = wide[many], u[many]
        guess = _guess(words, mean, mean, 1 / np.sqrt(mean), 1 / mean)
        near = np.flatnonzero(mean < EXPANDED)
        rates = mean[near]

        def distribution(k: Any, i: Any) -> Any:
            return gammaincc(k + 1, rates[i])

        found = tabled(words[near], guess[near], distribution, np.inf) if _alike(rates) else None
        if found is None:
            found = inverted(words[near], guess[near], distribution, np.full(near.shape, np.inf))
        guess[near] = found
        out[many] = guess
    return out.astype(rate.dtype).reshape(rate.shape)


def random_binomial(count: Any, prob: Any, seed: int, offset: int) -> Any:
    """Binomial numbers. Probabilities above one half count the failures."""
    from scipy.special import betainc

    u = np.asarray(philox.uniform(seed, offset, count.shape, np.dtype(np.float64))).reshape(-1)
    n, p = np.floor(count.astype(np.float64).reshape(-1)), prob.astype(np.float64).reshape(-1)
    out = np.where(np.isnan(n) | np.isnan(p), np.nan, np.where((n <= 0) | (p <= 0), 0.0, n))
    drawn = np.flatnonzero((n > 0) & (p > 0) & (p < 1))
    trials, chance, words = n[drawn], p[drawn], u[drawn]
    flipped = chance > 0.5
    rare = np.where(flipped, 1 - chance, chance)
    variance = trials * rare * (1 - rare)
    skew, excess = (1 - 2 * rare) / np.sqrt(variance), (1 - 6 * rare * (1 - rare)) / variance
    k = np.clip(_guess(words, trials * rare, variance, skew, excess), 0, trials)
    near = np.flatnonzero(variance < EXPANDED)
    few, rest = trials[near], 1 - rare[near]

    def distribution(k: Any, i: Any) -> Any:
        return betainc(few[i] - k, k + 1, rest[i])

    found = tabled(words[near], k[near], distribution, few[0]) if _alike(few) and _alike(rest) else None
    k[near] = inverted(words[near], k[near], distribution, few) if found is None else found
    out[drawn] = np.where(flipped, trials - k, k)
    return out.astype(count.dtype).reshape(count.shape)


KERNELS: dict[str, Any] = {"random_poisson": quiet(random_poisson), "random_binomial": quiet(random_binomial)}
