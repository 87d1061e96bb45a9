"""Poisson and binomial numbers: tables and threads give the same numbers as the search."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from candelabra_cpu import poisson_binomial

N = 20_000


@pytest.mark.parametrize("rate", [17.0, 30.5, 900.0, 9999.0])
def test_poisson_numbers_do_not_depend_on_other_rates(rate: float) -> None:
    """Several rates are searched, a single rate uses a table: the numbers are the same."""
    alone = poisson_binomial.random_poisson(np.full(N, rate), 5, 7)
    mixed = np.full(N + 1, rate)
    mixed[-1] = rate + 1
    np.testing.assert_array_equal(alone, poisson_binomial.random_poisson(mixed, 5, 7)[:-1])


@pytest.mark.parametrize(("count", "chance"), [(10, 0.3), (1, 0.5), (1000, 0.7), (40_000, 0.5), (5, 1e-3), (1e6, 1e-5)])
def test_binomial_numbers_do_not_depend_on_other_distributions(count: float, chance: float) -> None:
    """This holds on either side of one half, and if nearly all numbers are 0."""
    alone = poisson_binomial.random_binomial(np.full(N, float(count)), np.full(N, chance), 5, 7)
    counted = np.full(N + 1, float(count))
    counted[-1] += 1
    mixed = poisson_binomial.random_binomial(counted, np.full(N + 1, chance), 5, 7)
    np.testing.assert_array_equal(alone, mixed[:-1])


def _uneven(k: Any, _: Any) -> Any:
    return np.where(k == 3, 0.1, np.minimum(k / 8, 1.0))


def _short(k: Any, _: Any) -> Any:
    return np.minimum(k / 100, 1.0)


@pytest.mark.parametrize("distribution", [_uneven, _short])
def test_a_table_that_rounding_or_its_length_would_falsify_is_not_used(distribution: Callable[..., Any]) -> None:
    """A table that does not ascend, or ends before the uniform numbers do, is replaced by the search."""
    u = np.linspace(0, 0.99, 100)
    assert poisson_binomial.invert_cdf_by_table(u, np.floor(u * 8), distribution, np.inf) is None


def test_a_table_is_not_made_where_it_would_be_longer_than_the_numbers() -> None:
    """A small number of values is searched."""
    assert poisson_binomial.invert_cdf_by_table(np.array([0.1, 0.9]), np.array([1.0, 50.0]), _short, np.inf) is None
