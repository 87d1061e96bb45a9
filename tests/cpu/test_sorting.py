"""The stable order of integers that are sorted by keys of 16 bits, and of those that need more."""

from __future__ import annotations

import numpy as np
import pytest
from candelabra_cpu.sorting import FEW, stable_argsort

LIMITS = np.iinfo(np.int64)


@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize(
    ("low", "high"),
    [(-5, 5), (-(1 << 15), 1 << 15), (LIMITS.min, LIMITS.min + 9), (LIMITS.max - 9, LIMITS.max), (-(1 << 40), 1 << 40)],
    ids=["few", "one more than 16 bits", "least", "largest", "many"],
)
def test_integers_are_sorted_in_a_stable_order(low: int, high: int, descending: bool) -> None:
    """Equal integers keep their order, however large the integers and their range are."""
    rows = np.random.default_rng(1).integers(low, high, (3, 2 * FEW), endpoint=True)
    rows[:, :2] = low, high
    due = [sorted(range(2 * FEW), key=lambda i: -int(row[i]) if descending else int(row[i])) for row in rows]
    assert stable_argsort(rows, descending).tolist() == due
