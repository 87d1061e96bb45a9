"""Samples of pooling: the largest of each window and its index, the sum of each window, and their adjoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.registry import inputs, mistakes, special
from candelabra_conformance.samples.sample import Sample, sample

Ints = tuple[int, ...]


class Pool(NamedTuple):
    """Windows over the last dims of a shape."""

    shape: Ints
    window: Ints
    stride: Ints
    padding: Ints
    dilation: Ints
    ceil: bool = False
    kind: str = "ordinary"

    @property
    def output_size(self) -> Ints:
        """Return the number of windows per dim. With ``ceil`` the last one may end beyond the input, if it starts
        before the end padding."""
        found = []
        along = zip(self.shape[-len(self.window) :], *self[1:5], strict=True)
        for size, window, stride, padding, dilation in along:
            room = size + 2 * padding - dilation * (window - 1) - 1
            count = -(-room // stride) + 1 if self.ceil else room // stride + 1
            found.append(count - (self.ceil and (count - 1) * stride >= size + padding))
        return tuple(found)

    @property
    def output(self) -> Ints:
        """Return the shape of the result."""
        return (*self.shape[: -len(self.window)], *self.output_size)


POOLS = (
    Pool((2, 3, 7), (3,), (2,), (1,), (1,)),
    Pool((3, 8), (2,), (3,), (0,), (2,)),
    Pool((2, 3, 6, 5), (2, 2), (2, 2), (0, 0), (1, 1)),
    Pool((1, 2, 7, 8), (3, 2), (1, 3), (1, 0), (1, 2)),
    Pool((1, 2, 7, 5), (3, 3), (2, 2), (1, 1), (1, 1), True),
    Pool((2, 6, 7), (2, 3), (2, 2), (0, 0), (1, 1), True),
    Pool((1, 1, 4, 5, 6), (2, 2, 3), (2, 1, 2), (0, 1, 1), (1, 1, 1)),
    Pool((1, 1, 5), (5,), (1,), (0,), (1,)),
    Pool((1, 1, 8), (1,), (2,), (0,), (1,)),
    Pool((0, 2, 6, 6), (2, 2), (2, 2), (0, 0), (1, 1), False, "zero-size"),
    Pool((1, 1, 1), (1,), (1,), (0,), (1,), False, "length-1"),
    Pool((2, 5, 33, 31), (3, 3), (2, 2), (1, 1), (1, 1), True, "large"),
    Pool((3, 1023), (16,), (7,), (5,), (3,), False, "large"),
)
MAXIMA = ("max_pool", "max_pool_values")


@inputs(*MAXIMA, "sum_pool")
def pooled(t: Maker) -> Iterator[Sample]:
    """Yield every pool."""
    for pool in POOLS:
        yield sample(t(*pool.shape), *pool[1:5], pool.output_size, kind=pool.kind, gradient=pool.kind != "large")


@inputs(*MAXIMA)
def equals(t: Maker) -> Iterator[Sample]:
    """Yield equal elements, of which the first one is selected; padding never is, however small the numbers are."""
    x = np.ones((1, 1, 6), t.numpy)
    yield sample(x, (3,), (2,), (1,), (1,), (3,), note="ties", gradient=False)
    if not t.dtype.name.startswith("u"):
        low = np.full((1, 1, 4), -100).astype(t.numpy)
        yield sample(low, (3,), (1,), (1,), (1,), (4,), note="far below the padding's 0", gradient=False)


@inputs("sum_pool_adjoint")
def scattered(t: Maker) -> Iterator[Sample]:
    """Yield every pool for the backward function."""
    for pool in POOLS:
        gradient = pool.kind != "large"
        yield sample(t(*pool.output), pool.shape, *pool[1:5], kind=pool.kind, gradient=gradient)


@inputs("scatter_planes")
def at_indices(t: Maker) -> Iterator[Sample]:
    """Yield indices that are declared distinct, and duplicates, which accumulate."""
    once = np.stack([t.random.permutation(9)[:4] for _ in range(6)]).reshape(2, 3, 4)
    yield sample(t(2, 3, 4), once, 9, True)
    yield sample(t(2, 3, 4), once, 9, False)
    yield sample(t(2, 5), t.indices(2, 5, below=3), 3, False)
    yield sample(t(5), t.indices(5, below=7), 7, False)
    yield sample(t(3, 0), t.indices(3, 0, below=1), 4, True, kind="zero-size")
    yield sample(t(2, 1), t.indices(2, 1, below=1), 1, True, kind="length-1")
    yield sample(t(3, 1023), t.indices(3, 1023, below=2000), 2000, False, kind="large", gradient=False)


@inputs("put_planes")
def last_at_indices(t: Maker) -> Iterator[Sample]:
    """Yield distinct indices, and duplicates, of which the last one stays."""
    once = np.stack([t.random.permutation(9)[:4] for _ in range(6)]).reshape(2, 3, 4)
    yield sample(t(2, 3, 4), once, 9)
    yield sample(t(2, 5), t.indices(2, 5, below=3), 3, gradient=False)
    yield sample(t(5), t.indices(5, below=7), 7, gradient=False)
    yield sample(t(3, 0), t.indices(3, 0, below=1), 4, kind="zero-size")
    yield sample(t(2, 1), t.indices(2, 1, below=1), 1, kind="length-1")
    yield sample(t(70, 1000), t.indices(70, 1000, below=2000), 2000, kind="large", gradient=False)


@mistakes(*MAXIMA, "sum_pool")
def no_tensor(t: Maker) -> Iterator[Sample]:
    """Yield arguments that are not tensors. The public functions check the geometry."""
    yield sample(None, (2,), (2,), (0,), (1,), (2,))
    yield sample(1.0, (2,), (2,), (0,), (1,), (2,))


@special(*MAXIMA)
def not_numbers(t: Maker) -> Iterator[Sample]:
    """Yield NaN, of which the last one is selected, and -inf, which is larger than padding."""
    if t.is_floating:
        inf, nan = float("inf"), float("nan")
        yield sample(t.array([[1, nan, 2, nan, 3, inf, 4, 5]]), (3,), (2,), (1,), (1,), (4,))
        yield sample(t.array([[-inf, -inf, -inf, -inf]]), (3,), (1,), (1,), (1,), (4,))
    if t.is_integer:
        limits = np.iinfo(t.numpy)
        ends = np.array([[limits.min, limits.min, limits.max, limits.min]], t.numpy)
        yield sample(ends, (3,), (1,), (1,), (1,), (4,), note="the least integer in every window")


@special("sum_pool")
def sums_not_finite(t: Maker) -> Iterator[Sample]:
    """Yield NaN and infinities, which stay in their windows: a running sum must not propagate them."""
    if t.is_floating:
        yield sample(t.array([[1, 2, float("nan"), 3, 4, 5, 6, 7]]), (2,), (1,), (0,), (1,), (7,))
        yield sample(t.array([[1, 2, float("inf"), 3, 4, 5, 6, 7]]), (2,), (2,), (0,), (1,), (4,))
