"""Kernels that stay accurate where the obvious formula would lose digits."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest
from candelabra_conformance.references.pointwise_gamma import igamma, igammac
from scipy import special


def _relative(got: cd.Tensor, want: np.ndarray) -> float:
    """Return the largest relative error."""
    return float(np.max(np.abs(np.asarray(got.tolist()) - want) / np.abs(want)))


@pytest.mark.parametrize(("d", "digits"), [(cd.float32, 24), (cd.float64, 53)])
def test_gelu_keeps_its_digits_in_the_lower_tail(d: cd.dtype, digits: int) -> None:
    """Down to -12 the error is that of squaring the argument, at most 64 units in the last place."""
    x = cd.linspace(-12.0, 6.0, 1001, dtype=d)
    x = x[x != 0]
    values = np.asarray(x.tolist())
    got = cd.nn.functional.gelu(x)
    assert _relative(got, values * special.ndtr(values)) < 64 * 2.0**-digits


def test_gelu_of_what_is_not_finite() -> None:
    """Infinity propagates; 0 times minus infinity, and NaN, are NaN."""
    got = cd.nn.functional.gelu(cd.tensor([cd.inf, -cd.inf, cd.nan, -1e4])).tolist()
    assert got[0] == cd.inf
    assert got[1] != got[1]
    assert got[2] != got[2]
    assert got[3] == 0


def test_the_slope_of_gelu_is_that_of_the_differences() -> None:
    """The derivative in the tails and between them, in float32, agrees with finite differences."""
    x = cd.linspace(-5.0, 5.0, 101, requires_grad=True)
    cd.nn.functional.gelu(x).sum().backward()
    values = np.asarray(x.tolist())
    want = special.ndtr(values) + values * np.exp(-values * values / 2) / np.sqrt(2 * np.pi)
    assert x.grad is not None
    assert float(np.max(np.abs(np.asarray(x.grad.tolist()) - want))) < 1e-6


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_functions_around_one(name: str) -> None:
    """For arguments from 1.1 to 4 and smaller shapes both are within 12 units in the last place."""
    draw = np.random.Generator(np.random.Philox(5))
    x = draw.uniform(1.1, 4.0, 2000)
    a = x * draw.uniform(0.01, 1.1, 2000)
    want = (igamma if name == "igamma" else igammac)(a, x)
    got = getattr(cd, name)(cd.tensor(a.tolist(), dtype=cd.float64), cd.tensor(x.tolist(), dtype=cd.float64))
    assert _relative(got, np.asarray(want, np.float64)) < 12 * 2.0**-52
