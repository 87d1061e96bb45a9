"""Differences, gradients, integrals, covariances, Vandermonde matrices: compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import gradcheck, gradgradcheck


def close(actual: Any, expected: Any) -> None:
    """Assert that shape and values are equal."""
    assert tuple(actual.shape) == np.shape(expected)
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=1e-10, atol=1e-12)


# -- differences ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["float64", "complex128", "int64", "bool"])
def test_diff_is_numpys(dtype: str, rng: np.random.Generator) -> None:
    """Any order and dim, with prepend and append; for bools the result is an exclusive or."""
    a = rng.integers(0, 3, (3, 4)).astype(dtype)
    x = cd.tensor(a)
    for dim in (0, 1, -1):
        for n in (1, 2, 3):
            actual = cd.diff(x, n, dim)
            assert actual.dtype is x.dtype
            close(actual, np.diff(a, n, dim))
            close(cd.diff(x, n, axis=dim), np.diff(a, n, dim))
    close(x.diff(prepend=x[:, :1], append=x[:, :2]), np.diff(a, prepend=a[:, :1], append=a[:, :2]))
    close(cd.diff(x, 0), a)
    close(cd.diff(x, 9), np.diff(a, 9))
    out = cd.empty(0, dtype=x.dtype)
    assert cd.diff(x, out=out) is out
    close(out, np.diff(a))


# -- gradients --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_is_numpys(edge_order: Any, rng: np.random.Generator) -> None:
    """The spacing is 1, a number, or coordinates, along chosen dims."""
    a = rng.standard_normal((4, 5))
    x = cd.tensor(a)
    rows, columns = np.cumsum(rng.uniform(0.5, 1.5, 4)), np.cumsum(rng.uniform(0.5, 1.5, 5))
    cases: list[tuple[tuple[Any, ...], Any, Any]] = [
        ((), 1, None),
        ((2.0,), 2.0, None),
        ((2.0, 0.5), [2.0, 0.5], None),
        ((rows, columns), [cd.tensor(rows), cd.tensor(columns)], None),
        ((columns, rows), [cd.tensor(columns), cd.tensor(rows)], (1, 0)),
    ]
    for spacing, ours, dim in cases:
        expected = np.gradient(a, *spacing, axis=dim, edge_order=edge_order)
        actual = cd.gradient(x, spacing=ours, dim=dim, edge_order=edge_order)
        assert len(actual) == 2
        for f, e in zip(actual, expected, strict=True):
            close(f, e)
    (only,) = cd.gradient(x, spacing=[cd.tensor(columns)], dim=1, edge_order=edge_order)
    close(only, np.gradient(a, columns, axis=1, edge_order=edge_order))


def test_gradient_of_two_samples_is_their_difference() -> None:
    """Both results are equal; integers are promoted to floats."""
    assert [g.tolist() for g in cd.gradient(cd.tensor([1, 4]))] == [[3.0, 3.0]]
    assert [g.tolist() for g in cd.gradient(cd.tensor([1.0, 4.0]), spacing=[cd.tensor([0.0, 2.0])])] == [[1.5, 1.5]]


# -- integrals --------------------------------------------------------------------------------------------------------
def test_trapezoids_are_numpys(rng: np.random.Generator) -> None:
    """The spacing is 1, ``dx``, or the points of a vector or of every row; any dim; both names."""
    y, x = rng.standard_normal((3, 4)), np.cumsum(rng.uniform(0.5, 1.5, (3, 4)), 1)
    t, p = cd.tensor(y), cd.tensor(x)
    for f in (cd.trapezoid, cd.trapz):
        close(f(t), np.trapezoid(y))
        close(f(t, dx=0.5, dim=0), np.trapezoid(y, dx=0.5, axis=0))
        close(f(t, p), np.trapezoid(y, x))
        close(f(t, p[0]), np.trapezoid(y, x[0]))
        close(f(t, p[0, :3], dim=0), np.trapezoid(y, x[0, :3], axis=0))
    three = rng.standard_normal((2, 3, 4))
    close(cd.trapezoid(cd.tensor(three), p), np.trapezoid(three, x))
    close(cd.trapezoid(t[0], p), np.trapezoid(np.broadcast_to(y[0], (3, 4)), x))
    assert cd.trapezoid(cd.zeros(2, 0)).tolist() == [0, 0]
    assert tuple(cd.cumulative_trapezoid(cd.zeros(2, 0)).shape) == (2, 0)
    assert cd.trapezoid(cd.tensor([1, 2, 4])).item() == 4.5


def test_cumulative_trapezoid_runs(rng: np.random.Generator) -> None:
    """The last value equals the integral."""
    y, x = rng.standard_normal((3, 4)), np.cumsum(rng.uniform(0.5, 1.5, (3, 4)), 1)
    t, p = cd.tensor(y), cd.tensor(x)
    close(cd.cumulative_trapezoid(t, dx=2), np.cumsum(y[:, 1:] + y[:, :-1], 1))
    close(cd.cumulative_trapezoid(t, p)[:, -1], np.trapezoid(y, x))
    close(cd.cumulative_trapezoid(t, dim=0)[-1], np.trapezoid(y, axis=0))


def test_calculus_has_gradients_of_both_orders(rng: np.random.Generator) -> None:
    """Samples and coordinates have gradients."""
    y = cd.tensor(rng.standard_normal((2, 5)), requires_grad=True)
    x = cd.tensor(np.cumsum(rng.uniform(0.5, 1.5, 5)), requires_grad=True)
    calls: list[Callable[..., Any]] = [
        lambda y, x: cd.trapezoid(y, x),
        lambda y, x: cd.cumulative_trapezoid(y, x),
        lambda y, x: cd.gradient(y, spacing=[x], dim=1, edge_order=2)[0],
        lambda y, x: cd.diff(y, 2) * x[:3],
    ]
    for call in calls:
        assert gradcheck(call, (y, x), fast_mode=True)
        assert gradgradcheck(call, (y, x), fast_mode=True)


# -- covariances ------------------------------------------------------------------------------------------------------
def test_cov_is_numpys(rng: np.random.Generator) -> None:
    """Corrections and both kinds of weights work, for vectors, numbers, complex input, and as a method."""
    a = rng.standard_normal((3, 5)) + 1j * rng.standard_normal((3, 5))
    often, much = np.array([1, 2, 0, 1, 3]), rng.uniform(0.5, 1.5, 5)
    for array in (a.real, a):
        x = cd.tensor(array)
        close(cd.cov(x), np.cov(array))
        close(x.cov(correction=0), np.cov(array, ddof=0))
        close(cd.cov(x, fweights=cd.tensor(often)), np.cov(array, fweights=often))
        close(cd.cov(x, aweights=cd.tensor(much)), np.cov(array, aweights=much))
        actual = cd.cov(x, correction=2, fweights=cd.tensor(often), aweights=cd.tensor(much))
        close(actual, np.cov(array, ddof=2, fweights=often, aweights=much))
        close(cd.cov(x[0]), np.cov(array[0]))
        close(cd.corrcoef(x), np.corrcoef(array))
    assert cd.corrcoef(cd.tensor([1.0, 2.0, 4.0])).item() == 1
    assert cd.cov(cd.tensor([[1, 2], [3, 5]])).dtype is cd.float32


def test_cov_warns_where_nothing_is_left_to_divide_by() -> None:
    """One observation with a correction of 1 gives NaN or infinity, and a warning."""
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert cd.cov(cd.tensor(1.0)).isnan().item()


def test_covariances_have_gradients_of_both_orders(rng: np.random.Generator) -> None:
    """Observations and weights have gradients."""
    x = cd.tensor(rng.standard_normal((2, 4)), requires_grad=True)
    w = cd.tensor(rng.uniform(0.5, 1.5, 4), requires_grad=True)
    assert gradcheck(lambda x, w: cd.cov(x, aweights=w), (x, w), fast_mode=True)
    assert gradgradcheck(lambda x, w: cd.cov(x, aweights=w), (x, w), fast_mode=True)
    assert gradcheck(lambda x: cd.corrcoef(x)[0, 1], (x,), fast_mode=True)


# -- powers -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("increasing", [True, False])
def test_vander_is_numpys(increasing: bool) -> None:
    """Any number of powers is supported; integers give int64."""
    a = np.array([1, 2, 3, 5], dtype=np.int32)
    for n in (None, 0, 1, 2, 6):
        actual = cd.vander(cd.tensor(a), n, increasing)
        assert actual.dtype is cd.int64
        close(actual, np.vander(a, n, increasing))
    close(cd.vander(cd.tensor(a + 0.5j), increasing=increasing), np.vander(a + 0.5j, None, increasing))


X, FREQUENCIES = cd.ones(2, 3), cd.tensor([1, 1, 1])
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: cd.diff(cd.tensor(1.0)), RuntimeError, "diff expects input to be at least one-dimensional"),
    (lambda: cd.diff(X, "1"), TypeError, r"diff\(\): argument 'n'.* must be int, not str"),
    (lambda: cd.diff([1]), TypeError, "argument 'input' .position 1. must be Tensor, not list"),
    (lambda: cd.diff(X, prepend=[1]), TypeError, "argument 'prepend' .position 4. must be Tensor, not list"),
    (lambda: cd.diff(X, -1), RuntimeError, "order must be non-negative but got -1"),
    (lambda: cd.diff(X, prepend=X[0]), RuntimeError, "to be the same dimension as input"),
    (lambda: cd.diff(X, append=cd.ones(1, 3)), RuntimeError, r"input.size\(0\) = 2, but got tensor.size\(0\) = 1"),
    (lambda: cd.gradient(X, edge_order=3), RuntimeError, "only supports edge_order=1 and edge_order=2"),
    (lambda: cd.gradient(X, edge_order=2), RuntimeError, "each dimension size to be at least edge_order.1"),
    (lambda: cd.gradient(X, dim=(0, 0)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    (lambda: cd.gradient(X, spacing=[1.0] * 3), RuntimeError, "dimensions, 2, but got a list of length 3"),
    (lambda: cd.gradient(X.byte()), RuntimeError, "does not support uint8 input"),
    (lambda: cd.gradient(X, spacing=[cd.ones(2)], dim=1), RuntimeError, r"expected \[3\] for dim 1, got \[2\]"),
    (lambda: cd.trapezoid(X > 0), RuntimeError, "trapezoid: received a bool input for `x` or `y`"),
    (lambda: cd.trapezoid(X[0, 0]), RuntimeError, "trapezoid: expected `y` to be at least one-dimensional"),
    (lambda: cd.trapezoid(X, cd.ones(4, 3)), RuntimeError, "The size of tensor a .* must match the size of tensor b"),
    (lambda: cd.cumulative_trapezoid(X, X > 0), RuntimeError, "cumulative_trapezoid: received a bool input"),
    (lambda: cd.trapezoid(X, cd.ones(4)), RuntimeError, "There must be one `x` value for each sample point"),
    (lambda: cd.trapezoid(X, X, dx=1), TypeError, "takes either `x` or `dx`, got both"),
    (lambda: cd.cov(cd.ones(1, 2, 3)), RuntimeError, "two or fewer dimensions but got an input with 3 dimensions"),
    (lambda: cd.corrcoef(cd.ones(1, 2, 3)), RuntimeError, "two or fewer dimensions but got an input with 3 dim"),
    (lambda: cd.cov(X > 0), RuntimeError, "bool dtype is not supported for input"),
    (lambda: cd.cov(X, fweights=X), RuntimeError, "expected fweights to have one or fewer dimensions"),
    (lambda: cd.cov(X, fweights=X[0]), RuntimeError, "fweights to have integral dtype but got fweights with Float"),
    (lambda: cd.cov(X, aweights=FREQUENCIES), RuntimeError, "to have floating point dtype but got aweights with Long"),
    (lambda: cd.cov(X, fweights=FREQUENCIES[:2]), RuntimeError, "observations in the input but got 2 != 3"),
    (lambda: cd.cov(X, fweights=-FREQUENCIES), RuntimeError, "fweights cannot be negative"),
    (lambda: cd.cov(X, fweights=FREQUENCIES * 0), RuntimeError, "weights sum to zero, can't be normalized"),
    (lambda: cd.vander(X), RuntimeError, "x must be a one-dimensional tensor"),
    (lambda: cd.vander(X[0], -1), RuntimeError, "N must be non-negative"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[f"{n}" for n in range(len(ERRORS))])
def test_bad_samples_are_errors_in_pytorchs_words(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    """Every invalid call has PyTorch's class of error and its text."""
    with pytest.raises(error, match=text):
        call()
