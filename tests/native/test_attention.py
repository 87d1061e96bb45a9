"""Attention of native kernels over blocks of queries: its values and gradients, and what the mask hides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from candelabra.dtypes import float32
from candelabra_clike import Engine, StridedArray
from candelabra_clike.kernels.attention import KERNELS
from candelabra_clike.templates.attention import BLOCK_ROWS, LEAST_ROWS, block_rows, serves
from candelabra_native.arrays import payload, strided
from candelabra_native.engine import ENGINE

from tests.native.test_products import EACH_TILE, ENGINES

Array = np.ndarray
ATTENTION, GRADIENT = (KERNELS[name].for_dtype(float32) for name in ("attention", "attention_backward"))


class Sizes(NamedTuple):
    """The sizes of a call."""

    heads: tuple[int, ...]
    queries: int
    keys: int
    width: int
    value_width: int


CALLS = {
    "a block per head": Sizes((3, 2), 64, 64, 32, 32),
    "rows of a tile": Sizes((2,), 13, 32, 16, 8),
    "few queries": Sizes((3, 3), 5, 40, 7, 3),
    "several blocks": Sizes((9,), 150, 150, 33, 40),
    "more queries than keys": Sizes((8,), 70, 20, 8, 48),
    "keys that no query sees": Sizes((2, 4), 65, 300, 8, 16),
    "deeper than a panel": Sizes((8,), 66, 520, 260, 4),
}


def reference(q: Array, k: Array, v: Array, g: Array, causal: bool, scale: float) -> tuple[Array, ...]:
    """Return the output and the gradients in float64, by the definition."""
    q, k, v, g = (x.astype("f8") for x in (q, k, v, g))
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    through = g @ v.swapaxes(-1, -2)
    slopes = weights * (through - (weights * through).sum(-1, keepdims=True)) * scale
    return weights @ v, slopes @ k, slopes.swapaxes(-1, -2) @ q, weights.swapaxes(-1, -2) @ g


def drawn(sizes: Sizes, rng: np.random.Generator) -> list[Array]:
    """Return queries, keys, values and a gradient, as views of arrays in which the heads are not the first dims."""
    shapes = [(sizes.queries, sizes.width), (sizes.keys, sizes.width)]
    shapes += [(rows, sizes.value_width) for rows in (sizes.keys, sizes.queries)]
    found = [rng.standard_normal((rows, *sizes.heads, width)).astype("f4") for rows, width in shapes]
    return [np.moveaxis(x, 0, -2) for x in found]


def computed(engine: Engine, arrays: list[Array], causal: bool, scale: float) -> list[Array]:
    """Return output and gradients by the kernels of an engine."""
    q, k, v, g = (strided(x, engine) for x in arrays)
    results: tuple[StridedArray, ...] = (
        ATTENTION(q, k, v, None, causal, scale), *GRADIENT(g, q, k, v, None, causal, scale)
    )  # fmt: skip
    return [payload(x) for x in results]


@EACH_TILE
@pytest.mark.parametrize("causal", [False, True], ids=["no mask", "causal"])
@pytest.mark.parametrize("name", CALLS)
def test_output_and_gradients_are_those_of_the_definition(
    name: str, causal: bool, tile: str, rng: np.random.Generator
) -> None:
    """Blocks of queries give the values of the definition, for contiguous heads and views, and any sign of the scale.

    Rounding a score by eps of itself changes a weight by as much, so the bound grows with the largest score.
    """
    arrays = drawn(CALLS[name], rng)
    scale = -0.4 if name == "a block per head" else CALLS[name].width ** -0.5
    expected = reference(*arrays, causal, scale)
    largest = np.abs(arrays[0].astype("f8") @ arrays[1].swapaxes(-1, -2) * scale).max()
    found = computed(ENGINES[tile], arrays, causal, scale)
    for one, other in zip(found, expected, strict=True):
        error = np.abs(one - other).max() / np.abs(other).max()
        assert error <= (8 + 4 * largest) * np.finfo("f4").eps


def test_a_causal_mask_hides_later_keys_and_values(rng: np.random.Generator) -> None:
    """Keys and values after a query change nothing of its output, and get no gradient from it."""
    arrays = drawn(Sizes((2, 4), 80, 100, 8, 8), rng)
    before = computed(ENGINE, arrays, True, 0.5)
    later = [x.copy() for x in arrays]
    for x in later[1:3]:
        x[..., 50:, :] = rng.standard_normal(x[..., 50:, :].shape)
    after = computed(ENGINE, later, True, 0.5)
    np.testing.assert_array_equal(before[0][..., :50, :], after[0][..., :50, :])
    assert not any(x[..., 80:, :].any() for x in before[2:])


def test_a_score_that_is_not_a_number_makes_its_row_so() -> None:
    """NaN in a query makes the output of that query NaN, and no other; it does not pass as a weight of 0."""
    x = np.ones((1, 20, 8), "f4")
    q = x.copy()
    q[0, 3, 2] = np.nan
    found = payload(ATTENTION(*(strided(a, ENGINE) for a in (q, x, x)), None, True, 1.0))
    assert np.isnan(found[0, 3]).all()
    np.testing.assert_allclose(np.delete(found, 3, axis=1), 1, rtol=1e-6)


def test_large_scores_do_not_overflow() -> None:
    """The greatest score of a row is subtracted before the exponential."""
    x = np.full((2, 6, 4), 60, "f4")
    found = payload(ATTENTION(*(strided(a, ENGINE) for a in (x, x, x)), None, False, 1.0))
    np.testing.assert_allclose(found, 60, rtol=1e-6)


def test_blocks_keep_their_scores_in_the_cache() -> None:
    """The more keys, the fewer queries a block has; with too many keys, and for gradients of few large heads, the
    scores of whole heads are computed.
    """
    assert block_rows(64) == BLOCK_ROWS > block_rows(3000) >= LEAST_ROWS > block_rows(5000)
    assert serves(ENGINE, 64, 64, 48, True)
    assert not serves(ENGINE, 64, 5000, 48, False)
    assert serves(ENGINE, 1000, 1000, 1, False)
    assert not serves(ENGINE, 1000, 1000, 1, True)
    assert not serves(ENGINE, 3, 64, 48, False)


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_empty_arrays(empty: int, rng: np.random.Generator) -> None:
    """Without queries, heads or values there is nothing to compute."""
    sizes: Any = [(2, 9, 4), (2, 9, 4), (2, 9, 4)]
    sizes = [(0, 9, 4)] * 3 if empty == 0 else [(2, 0, 4), *sizes[1:]] if empty == 1 else [*sizes[:2], (2, 9, 0)]
    q, k, v = (strided(rng.standard_normal(shape).astype("f4"), ENGINE) for shape in sizes)
    assert ATTENTION(q, k, v, None, True, 1.0).size == 0
