"""Poisson and binomial numbers: the first number whose distribution function exceeds a word of NumPy's Philox.

The generator and the rules are those of the random-number specification, sections 2, 4, 15 and 16.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]
special: Final[Any] = import_module("scipy.special")  # it has no types


def _uniform(seed: int, offset: int, size: int) -> Array:
    words = np.random.Philox(key=seed, counter=offset).random_raw(size)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _first(u: Array, distribution: Callable[[int], Array], highest: Array) -> Array:
    """Return the smallest integer, up to ``highest``, whose distribution function exceeds ``u``, counting from 0."""
    out, k = np.zeros(u.shape), 0
    waiting = np.ones(u.shape, bool)
    while waiting.any():
        waiting = waiting & (distribution(k) <= u) & (k < highest)
        out[waiting] = k = k + 1
    return out


@reference("random_poisson")
def poisson(input: Array, seed: int, offset: int) -> Array:
    """Use the sum of the probabilities for rates up to 16, and the incomplete gamma function above."""
    rate = input.astype(np.float64).reshape(-1)
    u = _uniform(seed, offset, rate.size)
    term, total = np.exp(-rate), np.zeros(rate.shape)
    certain = ~np.isfinite(rate) | (rate == 0)

    def distribution(k: int) -> Array:
        nonlocal term, total
        term = term * rate / k if k else term
        total = total + term
        return np.where(certain, 1.0, np.where(rate <= 16, total, special.pdtr(k, rate)))

    out = np.where(np.isfinite(rate), _first(u, distribution, np.full(rate.shape, np.inf)), rate)
    return out.astype(input.dtype).reshape(input.shape)


@reference("random_binomial")
def binomial(count: Array, prob: Array, seed: int, offset: int) -> Array:
    """Use the incomplete beta function; for probabilities above one half, count the failures."""
    n, p = np.floor(count.astype(np.float64).reshape(-1)), prob.astype(np.float64).reshape(-1)
    u = _uniform(seed, offset, n.size)
    drawn = (n > 0) & (p > 0) & (p < 1)
    rare = np.where(p > 0.5, 1 - p, p)
    trials, chance = np.where(drawn, n, 1.0), np.where(drawn, rare, 0.5)
    k = _first(u, lambda k: special.bdtr(np.minimum(k, trials), trials.astype(int), chance), trials)
    k = np.where(p > 0.5, trials - k, k)
    certain = np.where(np.isnan(n) | np.isnan(p), np.nan, np.where((n <= 0) | (p <= 0), 0.0, n))
    return np.where(drawn, k, certain).astype(count.dtype).reshape(count.shape)
