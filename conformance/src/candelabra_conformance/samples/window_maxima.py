"""Samples of maxima of windows at positions without a stride: adaptive and fractional max pooling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from candelabra.dtypes import FLOATING

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.network_functions import pooling_rank
from candelabra_conformance.samples.registry import draws, inputs, mistakes, only, special
from candelabra_conformance.samples.sample import LARGE, LENGTH_ONE, ZERO_SIZE, Sample, sample

ADAPTIVE: Final = (
    "adaptive_max_pool1d", *(f"nn.functional.adaptive_max_pool{rank}d" for rank in (1, 2, 3)),
    *(f"nn.functional.adaptive_max_pool{rank}d_with_indices" for rank in (2, 3)),
)  # fmt: skip
FRACTIONAL: Final = tuple(
    f"nn.functional.fractional_max_pool{rank}d{also}" for rank in (2, 3) for also in ("", "_with_indices")
)
only(lambda d: d.category == FLOATING, "adaptive_max_pool", "placed_max_pool", "window_starts")
draws(*FRACTIONAL)


@inputs("adaptive_max_pool")
def covered(t: Maker) -> Iterator[Sample]:
    """Yield sizes that divide the input, that do not, that are larger, and several dims."""
    yield sample(t(2, 3, 6), (3,))
    yield sample(t(2, 7), (3,))
    yield sample(t(2, 3), (5,))
    yield sample(t(2, 2, 5, 4), (3, 2))
    yield sample(t(2, 3, 5, 4), (3, 2, 4))
    yield sample(t(1, 1), (1,), kind=LENGTH_ONE)
    yield sample(t(0, 2, 5), (2,), kind=ZERO_SIZE)
    yield sample(t(2, 5), (0,), kind=ZERO_SIZE)
    yield sample(t(3, 20, 70), (1, 3), kind=LARGE, gradient=False)


@inputs("placed_max_pool")
def placed(t: Maker) -> Iterator[Sample]:
    """Yield windows that overlap, windows of one element, and several dims."""
    yield sample(t(2, 3, 7), np.broadcast_to(np.array([0, 2, 4, 3]), (2, 3, 4)).copy(), (3,), (4,))
    yield sample(t(2, 2, 4), t.indices(2, 2, 5, below=4), (1,), (5,))
    yield sample(t(2, 2, 4, 5), t.indices(2, 2, 5, below=3), (2, 3), (3, 2))
    yield sample(t(1, 2, 3, 4, 3), t.indices(1, 2, 6, below=2), (2, 1, 2), (2, 3, 1))
    yield sample(t(1, 1, 1), np.zeros((1, 1, 1), np.int64), (1,), (1,), kind=LENGTH_ONE)
    yield sample(t(0, 2, 4), np.zeros((0, 2, 2), np.int64), (2,), (2,), kind=ZERO_SIZE)


@inputs("window_starts")
def starts(t: Maker) -> Iterator[Sample]:
    """Yield images and volumes, one window and none along a dim, windows as large as the input, and many planes."""
    numbers = t(2, 3, 3, low=0.0, high=0.99)
    yield sample(numbers[..., :2], (9, 12), (2, 3), (4, 1))
    yield sample(numbers, (7, 9, 5), (2, 3, 5), (3, 5, 1))
    yield sample(numbers[..., :1], (9,), (2,), (8,))
    yield sample(numbers[..., :2], (4, 4), (2, 2), (0, 2))
    yield sample(numbers[:0], (4, 4, 4), (2, 2, 2), (2, 2, 2), kind=ZERO_SIZE)
    yield sample(numbers[:1, :1, :2], (1, 1), (1, 1), (1, 1), kind=LENGTH_ONE)
    if t.dtype.itemsize > 2:  # half types round some starts of many differently
        yield sample(t(40, 60, 2, low=0.0, high=0.99), (60, 50), (2, 2), (20, 15), kind=LARGE)


@special("adaptive_max_pool")
def not_numbers(t: Maker) -> Iterator[Sample]:
    """Yield NaN, of which the last one in a window is selected, and equal values, of which the first one is."""
    inf, nan = float("inf"), float("nan")
    yield sample(t.array([[1, nan, 2, nan, 3, inf, 4, 5], [-inf, -inf, -inf, 2, 2, 2, 1, 1]]), (3,))
    long = np.zeros((4, 40))
    long[0, 7] = long[0, 21] = nan
    long[1, 3::5], long[2] = inf, -inf
    long[3] = np.where(np.arange(40) % 2, 0.0, -0.0)
    yield sample(t.array(long.tolist()), (1,))


@mistakes("adaptive_max_pool", "placed_max_pool")
def no_tensor(t: Maker) -> Iterator[Sample]:
    """Yield an argument that is not a tensor. The public functions check the rest."""
    yield sample(None, (2,))


@inputs(*ADAPTIVE)
def adapted_maxima(t: Maker) -> Iterator[Sample]:
    """Yield one size for all dims, one size each, None for the input's, and no batch."""
    rank = pooling_rank(t)
    if t.is_floating:
        x = t(2, 2, *[5] * rank)
        yield sample(x, 3)
        yield sample(x, (2,) if rank == 1 else (2, *[None] * (rank - 2), 1))
        yield sample(t(2, *[4] * rank), (2,) * rank)
        if not t.operator.endswith("indices"):
            yield sample(x, 2, True)


@mistakes(*ADAPTIVE)
def sizes_of_adapted_maxima(t: Maker) -> Iterator[Sample]:
    """Yield negative sizes, too many sizes, too few dims, empty dims, and integers."""
    rank = pooling_rank(t)
    x = t.of("float32")(1, 2, *[4] * rank)
    yield sample(x, -1, note="negative")
    yield sample(x, (1,) * (rank + 1), note="too many sizes")
    yield sample(t.of("float32")(4), 2, note="too few dims")
    yield sample(x[..., :0], 2, note="empty")
    yield sample(t.of("int64")(1, 2, *[4] * rank), 2, note="integers")


@inputs(*FRACTIONAL)
def random_windows(t: Maker) -> Iterator[Sample]:
    """Yield given and drawn positions, a size and a ratio, and no batch. Draws depend on the dtype, so the gradients of
    those samples, which are compared in float64, are not."""
    rank = pooling_rank(t)
    if t.is_floating:
        x, positions = t(2, 2, *[6] * rank), t(2, 2, rank, low=0.0, high=0.99)
        yield sample(x, 2, 3, _random_samples=positions)
        yield sample(x, (3, *[2] * (rank - 1)), output_ratio=0.5, gradient=False)
        yield sample(t(2, *[5] * rank), 2, (2, *[1] * (rank - 1)), gradient=False)


@mistakes(*FRACTIONAL)
def windows_that_do_not_fit(t: Maker) -> Iterator[Sample]:
    """Yield no size, windows that are too large, and positions of another shape."""
    rank = pooling_rank(t)
    x = t.of("float32")(1, 2, *[5] * rank)
    yield sample(x, 2, note="no size")
    yield sample(x, 4, 3, note="too large")
    yield sample(x, 2, 3, _random_samples=x[0], note="positions")
