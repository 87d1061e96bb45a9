"""Gamma numbers: the quantile and its derivative for concentrations from 1e-3 to 1e6."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from candelabra_cpu import gamma_numbers

special: Any = pytest.importorskip("scipy.special")
CONCENTRATIONS = [1e-3, 0.05, 0.5, 1.0, 7.0, 300.0, 1e6]
U = np.array([1e-12, 1e-3, 0.2, 0.5, 0.8, 0.999, 1 - 1e-12])


@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_quantiles_invert_the_distribution_function(concentration: float) -> None:
    """The distribution function of the quantile is the probability, also where the number itself underflows."""
    a = np.full(U.shape, concentration)
    log = gamma_numbers.log_quantile(a, U)
    assert (np.diff(log) > 0).all()
    with np.errstate(under="ignore"):
        x = np.exp(log)
    visible = x > 1e-290
    np.testing.assert_allclose(special.gammainc(a, x)[visible], U[visible], rtol=1e-8)
    # The first term of the series, where the others are below rounding.
    first = (np.log(U) + special.gammaln(a + 1)) / a
    np.testing.assert_allclose(log[first < -36], first[first < -36], rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("concentration", CONCENTRATIONS)
def test_slopes_are_differences_of_quantiles(concentration: float, dtype: Any) -> None:
    """The derivative is the quotient of differences of quantiles at the same probability."""
    u = U[1:-1]
    a, step = np.full(u.shape, concentration), concentration * 1e-4
    want = (gamma_numbers.log_quantile(a + step, u) - gamma_numbers.log_quantile(a - step, u)) / (2 * step)
    log = gamma_numbers.log_quantile(a, u)
    got = gamma_numbers.log_gamma_slope(a.astype(dtype), log.astype(dtype))
    assert got.dtype == dtype
    # In float32 the rounding of the logarithm is most of the error: a large concentration's density is narrow.
    tolerance = 1e-5 if dtype == np.float64 else 1e-5 + 1e-6 * np.sqrt(concentration) * max(1.0, abs(log).max() / 10)
    np.testing.assert_allclose(got, want, rtol=tolerance)


def test_numbers_depend_on_their_place_alone() -> None:
    """A number depends on the state, its index and its concentration, and not on those of the other numbers."""
    many = gamma_numbers.random_log_gamma(np.full(1000, 0.7), 5, 7)
    mixed = np.where(np.arange(1000) == 400, 0.7, 3.0)
    assert gamma_numbers.random_log_gamma(mixed, 5, 7)[400] == many[400]
    np.testing.assert_array_equal(
        gamma_numbers.random_log_gamma(np.array([0.0, np.inf, -1.0, np.nan]), 5, 7), [-np.inf, np.inf, np.nan, np.nan]
    )
