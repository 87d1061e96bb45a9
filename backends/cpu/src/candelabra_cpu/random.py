"""Random kernels: the functions of :mod:`candelabra_cpu.philox` with the signatures of the operators.

A loop of small draws would make a NumPy call for each of them. A number depends only on its position in the
stream, so a draw that continues the previous one reads ahead: the next :data:`AHEAD` numbers are computed together and
returned until they are used up, or until another position is requested.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from candelabra_cpu import philox
from candelabra_cpu.backend import TO_NUMPY

Shape = tuple[int, ...]

AHEAD: Final = 512
"""Numbers that are computed together. A draw of up to a sixteenth of them is small."""
SMALL: Final = AHEAD // 16


class _ReadAhead:
    """The read-ahead buffer of one thread, kind and dtype: ``values`` start at counter ``start + 1`` of ``seed``."""

    __slots__ = ("count", "draw", "dtype", "end", "per_counter", "seed", "start", "values")

    def __init__(self, draw: Callable[..., Any], dtype: Any) -> None:
        self.draw, self.dtype = draw, dtype
        self.per_counter = 32 // max(dtype.itemsize, 4)
        self.seed = self.start = self.end = -1
        self.count, self.values = 0, np.empty(0, dtype)

    def take(self, seed: int, offset: int, shape: Shape, n: int) -> Any:
        """Return a new array of ``n`` values from counter ``offset + 1`` on."""
        if seed == self.seed:
            first = (offset - self.start) * self.per_counter
            if 0 <= first <= self.count - n:
                return self.values[first : first + n].reshape(shape).copy()
            if offset == self.end:
                self.values = self.draw(seed, offset, AHEAD, self.dtype)
                self.start, self.end, self.count = offset, offset + AHEAD // self.per_counter, AHEAD
                return self.values[:n].reshape(shape).copy()
        self.seed, self.end, self.count = seed, offset - (-n // self.per_counter), 0
        return self.draw(seed, offset, shape, self.dtype)


class _ThreadReadAhead(threading.local):
    def __init__(self) -> None:
        real = [d for d in TO_NUMPY if d.is_floating_point]
        draws = (philox.uniform, philox.normal, philox.exponential)
        self.ahead = {draw: {d: _ReadAhead(draw, TO_NUMPY[d]) for d in real} for draw in draws}


_thread: Final = _ThreadReadAhead()
_LAST: Final = (1 << 64) - AHEAD
"""At this offset and beyond, close to the last counter, no numbers are read ahead."""


def _draw(draw: Any, shape: Shape, seed: int, offset: int, dtype: Any) -> Any:
    n = prod(shape)
    if 0 < n <= SMALL and offset < _LAST:
        reader = _thread.ahead[draw].get(dtype)
        if reader is not None:
            return reader.take(seed, offset, shape, n)
    return draw(seed, offset, shape, TO_NUMPY[dtype])


def random_uniform(shape: Shape, seed: int, offset: int, dtype: Any, index: int) -> Any:
    """Uniform numbers in [0, 1)."""
    return _draw(philox.uniform, shape, seed, offset, dtype)


def random_normal(shape: Shape, seed: int, offset: int, dtype: Any, index: int) -> Any:
    """Standard normal numbers."""
    return _draw(philox.normal, shape, seed, offset, dtype)


def random_exponential(shape: Shape, seed: int, offset: int, dtype: Any, index: int) -> Any:
    """Exponential numbers of rate 1."""
    return _draw(philox.exponential, shape, seed, offset, dtype)


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
