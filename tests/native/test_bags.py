"""The kernel of sums of bags."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest
from candelabra.nn import functional as F
from candelabra_clike.kernels.bags import KERNELS
from candelabra_clike.templates.bags import BLOCK, COLUMNS
from candelabra_native.arrays import payload, strided
from candelabra_native.engine import ENGINE


@pytest.mark.parametrize("scaled", [False, True])
def test_every_part_of_the_blocks_is_summed(scaled: bool) -> None:
    """Bags are longer than a partial sum, wider than a block of columns, and several work-items compute them."""
    draw = np.random.default_rng(1)
    weight = draw.integers(-9, 9, (9, 2 * COLUMNS + 3)).astype(np.float32)
    lengths = [3, 0, BLOCK, BLOCK + 1, 0, *[1] * 300, 2]
    index, starts = draw.integers(0, 9, sum(lengths)), np.cumsum([0, *lengths[:-1]])
    scales = draw.integers(-3, 3, index.size).astype(np.float32) if scaled else None
    kernel = KERNELS["bag_sums"].for_dtype(cd.float32)
    operands = [None if x is None else strided(x, ENGINE) for x in (weight, index, starts, scales)]
    rows = weight[index] * (1 if scales is None else scales[:, None])
    expected = np.stack([rows[a : a + n].sum(0) for a, n in zip(starts, lengths, strict=True)])
    np.testing.assert_array_equal(payload(kernel(*operands, False, False)), expected)
    assert KERNELS["bag_sums"].for_dtype(cd.int64) is None


def test_starts_that_are_not_sorted_read_nothing_beyond_the_indices() -> None:
    """Only the first and the last offset are checked; what the others say is unspecified, and harmless."""
    out = F.embedding_bag(cd.tensor([1, 1]), cd.ones(2, 3), cd.tensor([0, 9, -5, 1]), mode="sum")
    assert out.shape == (4, 3)
    assert out.isfinite().all()


def test_an_index_beyond_the_table_is_an_error() -> None:
    """It is that of the operator's check."""
    with pytest.raises(IndexError, match="index out of range in self"):
        F.embedding_bag(cd.tensor([0, 2]), cd.ones(2, 3), cd.tensor([0]), mode="sum")
