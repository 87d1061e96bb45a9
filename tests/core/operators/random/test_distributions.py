"""Poisson and binomial numbers, and arguments of random functions: distributions, reproducibility, errors."""

from __future__ import annotations

from math import exp, factorial, inf, isnan, lgamma, log, nan, sqrt
from typing import Any

import candelabra as cd
import numpy as np
import pytest

N = 20_000


def poisson_probability(k: int, rate: float) -> float:
    """Return the probability of k."""
    return exp(k * log(rate) - rate - lgamma(k + 1))


def binomial_probability(k: int, n: int, p: float) -> float:
    """Return the probability of k successes."""
    return factorial(n) / (factorial(k) * factorial(n - k)) * p**k * (1 - p) ** (n - k)


def chi_squared(values: np.ndarray, probability: Any) -> float:
    """Return chi-squared per category, for categories with an expected count of at least twenty."""
    top = int(values.max()) + 1
    expected = np.array([probability(k) * len(values) for k in range(top)])
    seen = np.bincount(values.astype(int), minlength=top)[:top]
    common = expected >= 20
    return float((((seen - expected) ** 2 / np.where(common, expected, 1))[common]).mean())


@pytest.mark.parametrize("rate", [0.3, 4.0, 15.9, 16.1, 60.0])
def test_poisson_numbers_have_their_distribution(rate: float) -> None:
    """Rates below and above the bound at which the algorithm changes are tested."""
    drawn = cd.poisson(cd.full((N,), rate, dtype=cd.float64), cd.Generator().manual_seed(1)).numpy()
    assert chi_squared(drawn, lambda k: poisson_probability(k, rate)) < 2


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (10, 0.3), (10, 0.9), (60, 0.05), (100, 0.5)])
def test_binomial_numbers_have_their_distribution(n: int, p: float) -> None:
    """Rare successes and rare failures are tested."""
    count, prob = cd.full((N,), float(n), dtype=cd.float64), cd.full((N,), p, dtype=cd.float64)
    drawn = cd.binomial(count, prob, cd.Generator().manual_seed(2)).numpy()
    assert chi_squared(drawn, lambda k: binomial_probability(k, n, p)) < 2


@pytest.mark.parametrize("mean", [9e3, 2e4, 1e7, 1e15])
def test_large_numbers_have_their_mean_and_variance(mean: float) -> None:
    """Variances below and above the bound at which the algorithm changes are tested."""
    generator = cd.Generator().manual_seed(3)
    poisson = cd.poisson(cd.full((N,), mean, dtype=cd.float64), generator)
    binomial = cd.binomial(cd.full((N,), 4 * mean, dtype=cd.float64), cd.full((N,), 0.25, dtype=cd.float64), generator)
    for drawn, variance in ((poisson, mean), (binomial, 0.75 * mean)):
        assert abs((drawn - mean).mean().item()) < 4 * sqrt(variance / N)
        assert abs(drawn.var().item() / variance - 1) < 0.05
        assert (drawn == drawn.floor()).all()


def test_edges_of_counts() -> None:
    """A rate of 0 gives 0; NaN propagates; probabilities of 0 and 1 are exact."""
    poisson = cd.poisson(cd.tensor([0.0, inf, nan])).tolist()
    assert poisson[:2] == [0, inf]
    assert isnan(poisson[2])
    count, prob = cd.tensor([3.0, 3.0, 0.0, -1.0, 3.0, nan]), cd.tensor([0.0, 1.0, 0.5, 0.5, nan, 0.5])
    binomial = cd.binomial(count, prob).tolist()
    assert binomial[:4] == [0, 3, 0, 0]
    assert isnan(binomial[4])
    assert isnan(binomial[5])
    assert cd.poisson(cd.empty(0)).shape == (0,)


def test_counts_are_reproducible_and_keep_the_dtype() -> None:
    """One generator gives one sequence; shapes broadcast, dtypes are promoted; the gradient is zero."""
    rates = cd.tensor([[0.5], [200.0]], requires_grad=True)
    first, again = (cd.poisson(rates, cd.Generator().manual_seed(7)) for _ in range(2))
    assert first.tolist() == again.tolist()
    assert cd.poisson(rates.detach().to(cd.bfloat16)).dtype is cd.bfloat16
    first.sum().backward()
    assert rates.grad.tolist() == [[0], [0]]
    made = cd.binomial(cd.tensor([[5.0], [6.0]]), cd.tensor([0.1, 0.9], dtype=cd.float64))
    assert made.shape == (2, 2)
    assert made.dtype is cd.float64


@pytest.mark.parametrize(
    ("draw", "error", "match"),
    [
        (lambda: cd.poisson(cd.tensor([1.0, -1.0])), RuntimeError, "expected rate to be non-negative"),
        (lambda: cd.poisson(cd.tensor([1])), NotImplementedError, "\"poisson\" not implemented for 'Long'"),
        (lambda: cd.binomial(cd.tensor([1]), cd.tensor([0.5])), NotImplementedError, "binomial\" not impl"),
        (lambda: cd.binomial(cd.ones(2), cd.ones(3)), RuntimeError, r"size of tensor a \(2\) must match"),
        (lambda: cd.poisson(cd.ones(1), 3), TypeError, r"argument 'generator' must be Generator, not int"),
        (lambda: cd.multinomial(cd.ones(2), 1, out=cd.empty(1)), RuntimeError, "Expected out tensor to have dtype"),
    ],
)  # fmt: skip
def test_draws_that_make_no_sense_are_refused(draw: Any, error: Any, match: str) -> None:
    """Negative rates, integer dtypes, and shapes that do not broadcast are errors."""
    with pytest.raises(error, match=match):
        draw()


@pytest.mark.parametrize("device", ["lantern", "ember"])
def test_devices_without_kernels_draw_the_reference_numbers(device: str, lantern: Any) -> None:
    """They fall back, so the numbers are the same."""
    rates = cd.tensor([3.0, 30.0, 300.0])
    here = cd.poisson(rates, cd.Generator().manual_seed(5)).tolist()
    with pytest.warns(UserWarning, match="operator 'random_poisson' has no kernel on"):
        there = cd.poisson(rates.to(device), cd.Generator(device).manual_seed(5))
    assert there.device.type == device
    assert there.tolist() == here
