"""Extreme eigenpairs by iteration."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
import scipy.linalg
from candelabra.autograd import gradcheck, gradgradcheck


def symmetric(rng: np.random.Generator, m: int, *batch: int, dtype: str = "float64") -> Any:
    """Return symmetric matrices with eigenvalues near 1, 2, …, m."""
    noise = rng.normal(size=(*batch, m, m)) * 0.1
    return (np.diag(np.arange(1.0, m + 1)) + noise + np.swapaxes(noise, -1, -2)).astype(dtype)


@pytest.mark.parametrize("largest", [None, True, False])
@pytest.mark.parametrize("batch", [(), (2,), (2, 1)])
def test_extreme_eigenpairs_are_found(batch: tuple[int, ...], largest: bool | None, rng: np.random.Generator) -> None:
    """The largest or the smallest ones are computed, for one matrix or a batch, with and without B."""
    a, b = symmetric(rng, 20, *batch), symmetric(rng, 20, *batch) / 20 + 2 * np.eye(20)
    for other in (None, b):
        E, X = cd.lobpcg(cd.tensor(a), 3, None if other is None else cd.tensor(other), largest=largest, tol=1e-10)
        flat = a.reshape(-1, 20, 20)
        pairs = zip(flat, [None] * len(flat) if other is None else b.reshape(-1, 20, 20), strict=True)
        expected = np.stack([scipy.linalg.eigh(one, two, eigvals_only=True) for one, two in pairs])
        expected = expected[:, :3] if largest is False else expected[:, :-4:-1]
        np.testing.assert_allclose(E.numpy(), expected.reshape(*batch, 3), rtol=1e-8)
        right = X.numpy() if other is None else b @ X.numpy()
        np.testing.assert_allclose(a @ X.numpy(), right * E.numpy()[..., None, :], atol=1e-6)


def test_the_start_the_preconditioner_and_the_end_are_the_callers(rng: np.random.Generator) -> None:
    """``X`` sets the number of pairs, ``iK`` speeds up convergence, ``niter`` limits the iterations."""
    a = symmetric(rng, 30, dtype="float32")
    A = cd.tensor(a)
    start = cd.tensor(rng.normal(size=(30, 2)).astype("float32"))
    E, X = cd.lobpcg(A, X=start, iK=cd.linalg.inv(A), largest=False)
    assert E.dtype is cd.float32
    assert X.shape == (30, 2)
    np.testing.assert_allclose(E.numpy(), np.linalg.eigvalsh(a)[:2], rtol=1e-4)
    assert cd.lobpcg(A, niter=0, n=4)[0].shape == (1,)
    assert cd.lobpcg(A, niter=-1)[0].item() == pytest.approx(np.linalg.eigvalsh(a)[-1], rel=1e-4)


def test_derivatives_are_those_of_exact_pairs(rng: np.random.Generator) -> None:
    """Derivatives of values and vectors (up to their signs) by A and by B agree to second order."""
    a = cd.tensor(symmetric(rng, 9)).requires_grad_()
    b = cd.tensor(symmetric(rng, 9) / 9 + 2 * np.eye(9)).requires_grad_()

    def plain(a: Any) -> Any:
        E, X = cd.lobpcg((a + a.mT) / 2, 2, tol=1e-14)
        return E, X * X

    def general(a: Any, b: Any) -> Any:
        E, X = cd.lobpcg((a + a.mT) / 2, 2, (b + b.mT) / 2, tol=1e-14, largest=False)
        return E, X * X

    assert gradcheck(plain, (a,), fast_mode=True)
    assert gradgradcheck(plain, (a,), fast_mode=True)
    assert gradcheck(general, (a, b), fast_mode=True)


def test_what_does_not_fit_is_refused() -> None:
    """Wrong shapes, dtypes, numbers of pairs and a tracker are errors."""
    a = cd.eye(6)
    with pytest.raises(ValueError, match=r"not applicable when the number of A rows \(=6\) is smaller than 3 x the"):
        cd.lobpcg(a, 3)
    with pytest.raises(RuntimeError, match=r"lobpcg: A must be batches of square matrices, but they are 6 by 2"):
        cd.lobpcg(a[:, :2])
    with pytest.raises(RuntimeError, match=r"lobpcg: A and B must have same shape, got \[6, 6\] vs \[3, 3\]"):
        cd.lobpcg(a, B=cd.eye(3))
    with pytest.raises(RuntimeError, match=r"lobpcg: X shape mismatch: got \[5, 1\], expected \[6, 1\]"):
        cd.lobpcg(a, X=cd.ones(5, 1))
    with pytest.raises(RuntimeError, match=r"lobpcg: Expected a floating point or complex tensor as input. Got Long"):
        cd.lobpcg(a.long())
    with pytest.raises(RuntimeError, match=r"lobpcg: Expected a real tensor as input"):
        cd.lobpcg(a * 1j)
    with pytest.raises(NotImplementedError, match=r"lobpcg\(\): argument 'tracker' is not supported"):
        cd.lobpcg(a, tracker=print)
