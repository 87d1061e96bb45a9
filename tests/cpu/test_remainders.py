"""Remainders of float32 by a quotient, equal to C's ``fmod`` in every bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from candelabra_cpu.blocks import LARGE
from candelabra_cpu.remainders import fmod, remainder

PAIRS = {"fmod": (fmod, np.fmod), "remainder": (remainder, np.remainder)}


def operands(rng: np.random.Generator) -> tuple[Any, Any]:
    """Return pairs of numbers of all magnitudes, integers, and every pair of special values."""
    ones = np.array([0.0, -0.0, 1, -1, 0.1, 3, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, 2**24, -(2**25)])
    pairs = [p.reshape(-1) for p in np.meshgrid(ones, ones)]
    n = LARGE
    columns = [
        np.concatenate([
            p, rng.standard_normal(n) * 10, np.exp(rng.uniform(-80, 80, n)), rng.integers(-50, 50, n),
        ]).astype(np.float32)
        for p in pairs
    ]  # fmt: skip
    return columns[0], columns[1]


@pytest.mark.parametrize("name", PAIRS)
def test_remainders_are_those_of_c(name: str, rng: np.random.Generator) -> None:
    """Signs of zeros, large quotients and special values agree."""
    ours, reference = PAIRS[name]
    x, y = operands(rng)
    with np.errstate(all="ignore"):
        want = reference(x, y)
        beside = reference(x, np.float32(0.1)), reference(np.float32(7), y)
    for got, right in ((ours(x, y), want), (ours(x, 0.1), beside[0]), (ours(7.0, y), beside[1])):
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, right)
        np.testing.assert_array_equal(np.signbit(got)[right == 0], np.signbit(right)[right == 0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ours(x.astype(np.float64), 3.0), reference(x.astype(np.float64), 3.0))
        np.testing.assert_array_equal(ours(x[:, None], y[:5]), reference(x[:, None], y[:5]))
