"""The CPU's permutations and multinomial draws, compared with their definitions and the distributions."""

import math

import ml_dtypes
import numpy as np
import pytest
from candelabra_cpu import philox
from scipy import stats  # type: ignore[import-untyped]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SEED, OFFSET = 20240229, 41
RARE = 1e-3
"""A p-value that chance produces only for one of many choices of seeds."""


@pytest.mark.parametrize("n", [0, 1, 2, 5, 1023, 1024, 1025, 70_000])
def test_a_permutation_is_the_order_of_the_words(n: int) -> None:
    """The indices that sort ``n`` words are the permutation."""
    keys = philox.words64(SEED, OFFSET, n).tolist()
    value = philox.permutation(SEED, OFFSET, n)
    assert value.dtype == np.int64
    assert value.tolist() == sorted(range(n), key=keys.__getitem__)
    assert philox.permutation(SEED, OFFSET, n, np.int32).dtype == np.int32


@pytest.mark.parametrize("n", [40, 1024, 5000])
def test_equal_keys_go_by_index(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties are sorted by index, and keys that differ only in their low bits are distinct."""
    noise = philox.words64(1, 0, n)
    for keys in (noise % np.uint64(7), noise % np.uint64(2000), noise >> np.uint64(60) << np.uint64(60), noise * 0):
        monkeypatch.setattr(philox, "words64", lambda seed, offset, count, keys=keys: keys[:count])
        assert philox.permutation(0, 0, n).tolist() == np.argsort(keys, kind="stable").tolist()


def test_permutations_are_uniform() -> None:
    """Chi-square over the 24 orders of four elements."""
    orders = [tuple(philox.permutation(2, offset, 4).tolist()) for offset in range(12_000)]
    counts = [orders.count(order) for order in sorted(set(orders))]
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > RARE


WEIGHTS = np.array([1.0, 0.0, 2.5, 0.5, 4.0])


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e300])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_multinomial_with_replacement_follows_the_weights(scale: float, dtype: str) -> None:
    """Chi-square of 100,000 draws; a zero weight is never drawn; scaling by a power of two has no effect."""
    if dtype == "float32":
        scale = 2.0 ** round(math.log2(scale) / 9)
    value = philox.multinomial(SEED, OFFSET, (WEIGHTS * scale).astype(dtype), 100_000, True)
    assert value.dtype == np.int64
    assert value.shape == (100_000,)
    counts = np.bincount(value, minlength=5)
    assert counts[1] == 0
    kept = WEIGHTS > 0
    assert stats.chisquare(counts[kept], 100_000 * WEIGHTS[kept] / WEIGHTS.sum()).pvalue > RARE
    again = philox.multinomial(SEED, OFFSET, (WEIGHTS * scale * 8).astype(dtype), 100_000, True)
    assert again.dtype == value.dtype
    assert again.tobytes() == value.tobytes()


def test_multinomial_with_replacement_is_integer_inversion() -> None:
    """Rows agree with section 10 of the specification, computed in Python's exact integers."""
    weights = philox.uniform(9, 0, (3, 17), np.float64)
    words = iter(philox.words64(SEED, OFFSET, 3 * 50).tolist())
    expected = []
    for row in weights.tolist():
        shift = 63 - (17).bit_length() - math.frexp(max(row))[1]
        below = np.cumsum([math.floor(math.ldexp(w, shift)) for w in row], dtype=np.uint64).tolist()
        points = [next(words) * below[-1] >> 64 for _ in range(50)]
        expected.append([next(i for i, edge in enumerate(below) if point < edge) for point in points])
    assert philox.multinomial(SEED, OFFSET, weights, 50, True).tolist() == expected


def test_multinomial_without_replacement_is_a_race() -> None:
    """The smallest quotients of exponential number and weight are drawn in order; zero weights are never drawn."""
    weights = np.stack([WEIGHTS, WEIGHTS[::-1]])
    numbers = philox.exponential(SEED, OFFSET, (2, 5), np.float64).tolist()
    expected = [
        sorted((i for i in range(5) if row[i] > 0), key=lambda i: race[i] / row[i])[:3]
        for row, race in zip(weights.tolist(), numbers, strict=True)
    ]
    value = philox.multinomial(SEED, OFFSET, weights, 3, False)
    assert value.dtype == np.int64
    assert value.tolist() == expected


def test_multinomial_without_replacement_follows_the_weights() -> None:
    """The first index follows the weights, the second the remaining weights; no index repeats."""
    rows = 50_000
    value = philox.multinomial(3, 0, np.tile(WEIGHTS, (rows, 1)), 2, False)
    kept = WEIGHTS > 0
    share = WEIGHTS / WEIGHTS.sum()
    assert (value[:, 0] != value[:, 1]).all()
    assert stats.chisquare(np.bincount(value[:, 0], minlength=5)[kept], rows * share[kept]).pvalue > RARE
    second = sum(share[i] * np.where(np.arange(5) == i, 0, share) / (1 - share[i]) for i in range(5))
    assert stats.chisquare(np.bincount(value[:, 1], minlength=5)[kept], rows * second[kept]).pvalue > RARE
    assert sorted(philox.multinomial(3, 0, WEIGHTS, 4, False).tolist()) == [0, 2, 3, 4]


def test_multinomial_of_a_vast_range_of_weights() -> None:
    """Weights below 2**-1000 of the largest are treated as zero; nothing overflows."""
    weights = np.array([5e-324, 1e308, 1e10])
    assert set(philox.multinomial(1, 0, weights, 100, True).tolist()) == {1}
    assert philox.multinomial(1, 0, weights, 2, False).tolist() == [1, 2]
    with pytest.raises(ValueError, match="at least num_samples=3 positive weights"):
        philox.multinomial(1, 0, weights, 3, False)
