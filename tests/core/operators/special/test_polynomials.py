"""Orthogonal polynomials compared with SciPy."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
import scipy.special as sp

DEGREES: dict[str, Any] = {
    "chebyshev_polynomial_t": sp.eval_chebyt,
    "chebyshev_polynomial_u": sp.eval_chebyu,
    "chebyshev_polynomial_v": lambda n, x: sp.eval_chebyu(n, x) - sp.eval_chebyu(n - 1, x),
    "chebyshev_polynomial_w": lambda n, x: sp.eval_chebyu(n, x) + sp.eval_chebyu(n - 1, x),
    "shifted_chebyshev_polynomial_t": sp.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": sp.eval_sh_chebyu,
    "shifted_chebyshev_polynomial_v": lambda n, x: sp.eval_sh_chebyu(n, x) - sp.eval_sh_chebyu(n - 1, x),
    "shifted_chebyshev_polynomial_w": lambda n, x: sp.eval_sh_chebyu(n, x) + sp.eval_sh_chebyu(n - 1, x),
    "hermite_polynomial_h": sp.eval_hermite,
    "hermite_polynomial_he": sp.eval_hermitenorm,
    "laguerre_polynomial_l": sp.eval_laguerre,
    "legendre_polynomial_p": sp.eval_legendre,
}


def close(got: Any, want: Any) -> None:
    """Assert that values are equal up to 1e-11."""
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("name", DEGREES)
def test_polynomials_are_scipys(name: str, rng: np.random.Generator) -> None:
    """The degree is a tensor or a number, and the argument may be a number if the degree is a tensor."""
    function, reference = getattr(cd.special, name), DEGREES[name]
    x = rng.uniform(-1.5, 1.5, (4, 1))
    n = np.arange(9.0)
    want = reference(n.astype(int), x)
    close(function(cd.tensor(x), cd.tensor(n)), want)
    for degree in range(9):
        close(function(cd.tensor(x), degree), want[:, degree : degree + 1])
    close(function(0.3, cd.tensor(n)), reference(n.astype(int), 0.3))
    assert function(cd.tensor([1, 2]), 2).dtype is cd.float32
    assert function(cd.empty(0), cd.empty(0)).shape == (0,)
    out = cd.empty(4, 9, dtype=cd.float64)
    assert function(cd.tensor(x), cd.tensor(n), out=out) is out


@pytest.mark.parametrize("name", DEGREES)
def test_polynomials_of_negative_degree_are_zero(name: str) -> None:
    """Fractional degrees are truncated."""
    function = getattr(cd.special, name)
    x = cd.tensor([0.5, 2.0])
    assert function(x, -1).tolist() == [0.0, 0.0]
    assert function(x, cd.tensor([-2.0, 0.0])).tolist() == [0.0, 1.0]
    assert function(x, 3.7).tolist() == function(x, 3).tolist()


@pytest.mark.parametrize("name", DEGREES)
def test_polynomials_can_be_differentiated(name: str, rng: np.random.Generator) -> None:
    """They are differentiable in the argument, for each degree."""
    x = cd.tensor(rng.uniform(-0.9, 0.9, 5), dtype=cd.float64, requires_grad=True)
    n = cd.tensor([0.0, 1.0, 2.0, 3.0, 5.0], dtype=cd.float64)
    assert cd.autograd.gradcheck(lambda v: getattr(cd.special, name)(v, n), (x,))
    assert cd.autograd.gradcheck(lambda v: getattr(cd.special, name)(v, 4), (x,))
