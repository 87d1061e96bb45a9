"""Exponentials and logarithms."""

from __future__ import annotations

import math

import candelabra as cd
import numpy as np
import pytest
from candelabra._records.registry import OPERATORS

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_sums_of_exponentials_are_numpys(name: str) -> None:
    """Large arguments do not overflow, and infinities are correct; the body agrees with the kernel."""
    values = np.array([0.0, 1.0, -3.5, 1000.0, -1000.0, INF, -INF])
    with np.errstate(all="ignore"):
        want = getattr(np, name)(values[:, None], values[None, :])
    x, y = cd.tensor(values)[:, None], cd.tensor(values)[None, :]
    np.testing.assert_allclose(getattr(cd, name)(x, y).numpy(), want, rtol=1e-13)
    np.testing.assert_allclose(OPERATORS[name].body(x, y).numpy(), want, rtol=1e-13)
    np.testing.assert_allclose(getattr(cd, name)(x.float(), y.float()).numpy(), want, rtol=1e-6, atol=1e-30)


def test_sums_of_complex_exponentials() -> None:
    """``logaddexp`` supports complex numbers; infinite real parts do not give NaN."""
    x, y = np.array([1 + 1j, 500 - 2j, 0.5j]), np.array([2 - 1j, 499 + 1j, -3 + 0j])
    want = np.log(np.exp(x - 500) + np.exp(y - 500)) + 500
    for function in (cd.logaddexp, OPERATORS["logaddexp"].body):
        np.testing.assert_allclose(function(cd.tensor(x), cd.tensor(y)).numpy().real[1:2], want.real[1:2], rtol=1e-12)
        small = function(cd.tensor(x[[0, 2]]), cd.tensor(y[[0, 2]])).numpy()
        np.testing.assert_allclose(small, np.log(np.exp(x[[0, 2]]) + np.exp(y[[0, 2]])), rtol=1e-12)
        assert function(cd.tensor([complex(INF, 0)]), cd.tensor([complex(INF, 0)])).tolist() == [complex(INF, 0)]
