"""Tangents of factorizations, which are computed block by block, and of determinants, which share a factorization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.func import jvp, vmap
from candelabra.testing import assert_close

F = Callable[[Any], Any]
MORE = 300
"""More rows than two blocks have, and no multiple of their size."""


def tensor(rng: np.random.Generator, *shape: int, dtype: Any = cd.float64) -> Any:
    """Return normally distributed numbers."""
    found = cd.tensor(rng.standard_normal(shape))
    if not dtype.is_complex:
        return found.to(dtype)
    return cd.complex(found, cd.tensor(rng.standard_normal(shape)))


def assert_derivative(f: F, x: Any, t: Any) -> None:
    """Compare ``jvp`` with the difference quotient: that of f(x + h t), whose error is of order h²."""
    step = 1e-6
    value, along = jvp(f, (x,), (t,))
    assert_close(value, f(x), rtol=1e-10, atol=1e-10)
    expected = (f(x + step * t) - f(x - step * t)) / (2 * step)
    error = (along - expected).abs().amax() / expected.abs().amax()
    assert error < 1e-6


@pytest.mark.parametrize("shape", [(128, 128), (129, 129), (MORE, MORE), (MORE, 200), (200, MORE), (2, 140, 140)])
def test_lu(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    """Square, wide and tall matrices whose rows are swapped, and a batch."""
    large = cd.eye(*shape[-2:], dtype=cd.float64).roll(1, 0) * 40
    x = tensor(rng, *shape) + large
    assert_derivative(lambda a: cd.linalg.lu_factor(a)[0], x, tensor(rng, *shape))


@pytest.mark.parametrize("dtype", [cd.float64, cd.complex128], ids=str)
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(dtype: Any, upper: bool, rng: np.random.Generator) -> None:
    """Both triangles, of real and complex matrices of several blocks."""
    half, t = tensor(rng, MORE, MORE, dtype=dtype), tensor(rng, MORE, MORE, dtype=dtype)
    x = half @ half.mH / MORE + cd.eye(MORE, dtype=dtype)
    assert_derivative(lambda a: cd.linalg.cholesky(a, upper=upper), x, t + t.mH)


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unitriangular", [False, True])
def test_triangular_solutions(upper: bool, unitriangular: bool, rng: np.random.Generator) -> None:
    """A tangent of the other triangle, and of a diagonal that is not read, has no effect."""
    x, b = tensor(rng, MORE, MORE) / MORE + cd.eye(MORE, dtype=cd.float64) * 2, tensor(rng, MORE, 5)

    def solved(a: Any) -> Any:
        return cd.linalg.solve_triangular(a, b, upper=upper, unitriangular=unitriangular)

    t = tensor(rng, MORE, MORE)
    assert_derivative(solved, x, t)
    unread = t.tril(-int(not unitriangular)) if upper else t.triu(int(not unitriangular))
    assert not jvp(solved, (x,), (unread,))[1].any()


@pytest.mark.parametrize("n", [1, 5, 60])
def test_determinants(n: int, rng: np.random.Generator) -> None:
    """Those of one matrix and of a batch, small and large; the sign of a real determinant has no derivative."""
    for shape in ((n, n), (3, n, n)):
        x, t = tensor(rng, *shape) / n + cd.eye(n, dtype=cd.float64), tensor(rng, *shape)
        assert_derivative(cd.linalg.det, x, t)
        assert_derivative(lambda a: cd.linalg.slogdet(a).logabsdet, x, t)
        assert not jvp(lambda a: cd.linalg.slogdet(a).sign, (x,), (t,))[1].any()


def test_the_sign_of_a_complex_determinant_turns(rng: np.random.Generator) -> None:
    """Its derivative is that of the phase."""
    x, t = tensor(rng, 50, 50, dtype=cd.complex128), tensor(rng, 50, 50, dtype=cd.complex128)
    assert_derivative(lambda a: cd.linalg.slogdet(a).sign, x, t)


def test_singular_matrices_of_any_size_have_a_derivative_of_the_determinant(rng: np.random.Generator) -> None:
    """A matrix of rank n - 1: the determinant of the matrix that has a tangent in place of the dependent row."""
    for n in (4, 60):
        x = tensor(rng, n, n) / n + cd.eye(n, dtype=cd.float64)
        x[-1] = 0
        t = tensor(rng, n, n)
        replaced = x.clone()
        replaced[-1] = t[-1]
        value, along = jvp(cd.linalg.det, (x,), (t,))
        assert value == 0
        assert_close(along, cd.linalg.det(replaced), rtol=1e-8, atol=1e-12)


def test_many_examples_at_once(rng: np.random.Generator) -> None:
    """``vmap`` of ``jvp`` is the loop, for matrices of several blocks and for determinants."""
    x, t = tensor(rng, 2, 150, 150) + cd.eye(150, dtype=cd.float64) * 40, tensor(rng, 2, 150, 150)
    for f in (lambda a: cd.linalg.lu_factor(a)[0], lambda a: cd.linalg.slogdet(a).logabsdet):

        def along(a: Any, b: Any, f: F = f) -> Any:
            return jvp(f, (a,), (b,))[1]

        assert_close(vmap(along)(x, t), cd.stack([along(a, b) for a, b in zip(x, t, strict=True)]))
