"""Random kernels: the functions of :mod:`candelabra_cpu.philox` with the signatures of the operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu import philox
from candelabra_cpu.backend import TO_NUMPY

Shape = tuple[int, ...]


def random_uniform(shape: Shape, seed: int, offset: int, dtype: Any, index: int) -> Any:
    """Uniform numbers in [0, 1)."""
    return philox.uniform(seed, offset, shape, TO_NUMPY[dtype])


def random_normal(shape: Shape, seed: int, offset: int, dtype: Any, index: int) -> Any:
    """Standard normal numbers."""
    return philox.normal(seed, offset, shape, TO_NUMPY[dtype])


def random_exponential(shape: Shape, seed: int, offset: int, dtype: Any, index: int) -> Any:
    """Exponential numbers of rate 1."""
    return philox.exponential(seed, offset, shape, TO_NUMPY[dtype])


def random_integers(shape: Shape, low: int, high: int, seed: int, offset: int, dtype: Any, index: int) -> Any:
    """Integers in [low, high)."""
    return np.asarray(philox.integers(seed, offset, low, high, shape, TO_NUMPY[dtype]))


def random_permutation(n: int, seed: int, offset: int, dtype: Any, index: int) -> Any:
    """The integers 0 to n - 1 in random order."""
    return np.asarray(philox.permutation(seed, offset, n, TO_NUMPY[dtype]))


def random_bernoulli(p: Any, shape: Shape, seed: int, offset: int, index: int) -> Any:
    """True with probability ``p``. Raises ``ValueError`` if a tensor holds a value outside [0, 1]."""
    if isinstance(p, np.ndarray) and not ((p >= 0) & (p <= 1)).all():
        raise ValueError(f"bernoulli() expects probabilities in [0, 1], got {p.min()} to {p.max()}")
    return np.asarray(philox.bernoulli(seed, offset, p, shape))


def random_multinomial(weights: Any, num_samples: int, replacement: bool, seed: int, offset: int) -> Any:
    """Indices drawn by weight from each row."""
    if weights.ndim == 2 and not len(weights):
        return np.empty((0, num_samples), np.int64)
    return np.asarray(philox.multinomial(seed, offset, weights, num_samples, replacement))


KERNELS: dict[str, Any] = {
    "random_uniform": random_uniform, "random_normal": random_normal, "random_exponential": random_exponential,
    "random_integers": random_integers, "random_permutation": random_permutation,
    "random_bernoulli": random_bernoulli, "random_multinomial": random_multinomial,
}  # fmt: skip
