"""Norms of vectors and matrices, and functions based on them."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest

ORDERS = [0, 0.5, 1, 1.5, 2, 3, math.inf, -math.inf, -1, -2.5]
DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


def random(rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "float64") -> Any:
    """Return normal numbers, with imaginary parts in a complex dtype."""
    values = rng.normal(size=shape)
    return values + 1j * rng.normal(size=shape) if dtype.startswith("complex") else values


def close(actual: Any, expected: Any, digits: float = 1e-10) -> None:
    """Assert that shapes are equal, and values up to the given number of digits."""
    expected = np.asarray(expected)
    assert tuple(actual.shape) == expected.shape
    np.testing.assert_allclose(actual.detach().double().numpy(), expected, rtol=digits, atol=digits)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [None, 0, -1, (0, 2), (1, 2), (2, 1)])
def test_vector_norms(dim: Any, dtype: str, order: float, rng: np.random.Generator) -> None:
    """Every order over every choice of dims in every dtype; the result is real."""
    x = cd.tensor(random(rng, (3, 4, 2), dtype)).to(getattr(cd, dtype))
    values = x.to(cd.complex128 if x.is_complex() else cd.float64).numpy()
    digits = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4, "complex64": 1e-4}.get(dtype, 1e-10)
    for keepdim in (False, True):
        actual = cd.linalg.vector_norm(x, order, dim, keepdim)
        assert actual.dtype is (x.abs().dtype)
        close(actual, np.linalg.vector_norm(values, ord=order, axis=dim, keepdims=keepdim), digits)


@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("dim", [(-2, -1), (0, 2), (2, 0), (1, 0)])
def test_matrix_norms(dim: tuple[int, int], dtype: str, order: Any, rng: np.random.Generator) -> None:
    """Every order over every pair of dims, under both names."""
    a = random(rng, (3, 4, 2), dtype)
    for keepdim in (False, True):
        expected = np.linalg.norm(a, order, dim, keepdim)
        close(cd.linalg.matrix_norm(cd.tensor(a), order, dim, keepdim), expected)
        close(cd.linalg.norm(cd.tensor(a), order, dim, keepdim), expected)


def test_norm_chooses_by_order_and_dims(rng: np.random.Generator) -> None:
    """Without an order: the 2-norm of all elements; one dim: vector norms; two dims, or a matrix: matrix norms."""
    a = random(rng, (3, 4))
    A = cd.tensor(a)
    close(cd.linalg.norm(A), np.linalg.norm(a))
    close(cd.linalg.norm(A, dim=0), np.linalg.norm(a, axis=0))
    close(cd.linalg.norm(A, 1), np.linalg.norm(a, 1))
    close(cd.linalg.norm(A, 1, 1), np.linalg.norm(a, 1, 1))
    close(cd.linalg.norm(A, "nuc", keepdim=True), np.linalg.norm(a, "nuc", keepdims=True))
    close(cd.linalg.norm(A[0], 3), np.linalg.norm(a[0], 3))
    close(cd.linalg.norm(cd.tensor(random(rng, (2, 2, 2))), keepdim=True) * 0, np.zeros((1, 1, 1)))
    close(cd.linalg.norm(A.float(), dtype=cd.float64), np.linalg.norm(a.astype("float32").astype(float)))
    assert cd.linalg.norm(A.float(), dtype=cd.float64).dtype is cd.float64


def test_the_older_norm_takes_orders_of_vectors_over_several_dims(rng: np.random.Generator) -> None:
    """``p=2`` of a matrix is its Frobenius norm, and "nuc" is a matrix norm."""
    a = random(rng, (2, 3, 4))
    A = cd.tensor(a)
    close(cd.norm(A), np.linalg.norm(a.ravel()))
    close(A.norm(1), np.abs(a).sum())
    close(A.norm(2, (1, 2)), np.linalg.norm(a, "fro", (1, 2)))
    close(A.norm(p=3, dim=-1, keepdim=True), np.linalg.norm(a, 3, -1, True))
    close(A.norm("fro", 1), np.linalg.norm(a, axis=1))
    close(A.norm(None, 1), np.linalg.norm(a, axis=1))
    close(A.norm("nuc"), np.linalg.norm(a, "nuc", (1, 2)))
    close(A.norm("nuc", (0, 2)), np.linalg.norm(a, "nuc", (0, 2)))
    out = cd.empty(0, dtype=cd.float64)
    assert cd.norm(A, 1, out=out) is out
    assert cd.norm(A.float(), dtype=cd.float64).dtype is cd.float64


def test_numpys_names_of_dims_are_understood(rng: np.random.Generator) -> None:
    """``axis`` and ``keepdims`` are accepted as keywords."""
    A = cd.tensor(random(rng, (3, 4)))
    for function in (cd.norm, cd.linalg.norm, cd.linalg.vector_norm):
        assert cd.equal(function(A, axis=1, keepdims=True), function(A, dim=1, keepdim=True))
    assert cd.equal(cd.linalg.matrix_norm(A, axis=(1, 0), keepdims=True), cd.linalg.matrix_norm(A, "fro", (1, 0), True))
    assert cd.equal(cd.linalg.vecdot(A, A, axis=0), cd.linalg.vecdot(A, A, dim=0))


def test_norms_of_nothing_are_zero_unless_they_are_extremes() -> None:
    """Norms of empty vectors and matrices are 0, unless they are extremes."""
    for order in (0, 0.5, 1, 2, 3):
        assert cd.linalg.vector_norm(cd.zeros(0), order).item() == 0
    for order in (1, 2, math.inf, "fro", "nuc"):
        assert cd.linalg.matrix_norm(cd.zeros(2, 0, 0), order).tolist() == [0, 0]
    for order, shown in ((math.inf, "inf"), (-math.inf, "-inf"), (-1, "-1")):
        with pytest.raises(
            RuntimeError, match=f"linalg.vector_norm cannot compute the {shown} norm on an empty tensor"
        ):
            cd.linalg.vector_norm(cd.zeros(0), order)
    with pytest.raises(RuntimeError, match=r"cannot compute the inf norm on the dimension \[1\] of an empty tensor"):
        cd.linalg.vector_norm(cd.zeros(2, 0), math.inf, 1)
    assert cd.linalg.vector_norm(cd.zeros(0, 2), math.inf, 1).shape == (0,)


def test_norms_hand_nan_and_infinities_on() -> None:
    """NaN gives NaN, and an infinite element gives an infinite norm."""
    x = cd.tensor([1.0, math.nan])
    for order in (1, 2, 3, math.inf, -math.inf):
        assert math.isnan(cd.linalg.vector_norm(x, order).item())
    assert cd.linalg.vector_norm(cd.tensor([1.0, -math.inf])).item() == math.inf
    assert cd.linalg.vector_norm(cd.tensor(-3.0)).item() == 3


def test_norms_refuse_what_they_are_not_of() -> None:
    """Integers, unknown orders and dims, and wrong dtypes raise PyTorch's errors."""
    a = cd.ones(2, 2)
    norm, vector, matrix = cd.linalg.norm, cd.linalg.vector_norm, cd.linalg.matrix_norm
    cases: list[tuple[Any, str]] = [
        (lambda: norm(cd.ones(2, 2, 2), 2), "linalg.norm: If dim is not specified but ord is, the input must be 1D or"),
        (lambda: norm(a, "foo"), "linalg.matrix_norm: Order foo not supported"),
        (
            lambda: norm(a, "fro", (0, 1, 2)),
            r"linalg.norm: If dim is specified, it must be of length 1 or 2. Got \[0, 1",
        ),
        (lambda: norm(a, "fro", 0), "linalg.matrix_norm: dim must be a 2-tuple. Got 0"),
        (lambda: matrix(a, 3), "linalg.matrix_norm: Order 3 not supported"),
        (lambda: matrix(a, dim=(0, 0)), r"linalg.matrix_norm: dims must be different. Got \(0, 0\)"),
        (lambda: matrix(cd.ones(2)), "linalg.matrix_norm: The input tensor A must have at least 2 dimensions"),
        (
            lambda: matrix(a.long()),
            "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got Long",
        ),
        (
            lambda: vector(a.long()),
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long",
        ),
        (lambda: vector(a, dtype=cd.complex64), "dtype should be real for real inputs, but got ComplexFloat"),
        (lambda: vector(a * 1j, dtype=cd.float32), "dtype should be complex for complex inputs, but got Float"),
        (lambda: vector(a, dtype=cd.int64), "dtype should be floating point or complex, but got Long"),
        (
            lambda: vector(a.double(), dtype=cd.float32),
            r"the dtype of the input \(Double\) should be convertible without",
        ),
        (lambda: cd.norm(a, "foo"), "linalg.matrix_norm: Order foo not supported"),
        (lambda: cd.dist(a.long(), a.long()), r"norm\(\): input dtype should be either floating point or complex. Got"),
        (lambda: cd.renorm(cd.ones(2), 2, 0, 1), "renorm: input needs at least 2 dimensions, got 1 dimensions"),
        (lambda: cd.renorm(a, 1j, 0, 1), "renorm: p must be real-valued"),
        (lambda: cd.renorm(a, -1, 0, 1), "renorm: non-positive-norm not supported"),
        (lambda: cd.renorm(a, 1, 0, -1), "renorm: expected maxnorm to be >= 0 but got -1"),
        (
            lambda: cd.renorm(a.long(), 1, 0, 1),
            "renorm: Expected a floating point or complex tensor as input. Got Long",
        ),
    ]
    for call, words in cases:
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(
        TypeError, match=r"linalg_vector_norm\(\): argument 'ord' \(position 2\) must be float, not str"
    ):
        vector(a, "fro")


@pytest.mark.parametrize("order", ORDERS[:7])
def test_distances(order: float, rng: np.random.Generator) -> None:
    """dist is the norm of the difference, with broadcasting."""
    a, b = random(rng, (3, 4)), random(rng, (4,))
    close(cd.dist(cd.tensor(a), cd.tensor(b), order), np.linalg.vector_norm(a - b, ord=order))
    close(cd.tensor(a).dist(cd.tensor(b), order), np.linalg.vector_norm(a - b, ord=order))


def test_renorm_shortens_what_is_too_long() -> None:
    """Slices along a dim that exceed the limit are scaled; the others do not change; in place too."""
    x = cd.tensor([[3.0, 4.0], [0.3, 0.4]])
    assert cd.renorm(x, 2, 0, 1).tolist() == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4]]))
    assert cd.renorm(x, 1, -1, 1).abs().sum(0).tolist() == pytest.approx([1, 1])
    assert x.renorm_(math.inf, 0, 1) is x
    assert x.abs().amax(1).tolist() == pytest.approx([1, 0.4])


def test_gradients_at_corners_are_subgradients() -> None:
    """The gradient is 0 for a norm of 0; equal extremes share it; that of order 0 is zero."""
    for order in ORDERS[:7]:
        x = cd.zeros(3, requires_grad=True)
        cd.linalg.vector_norm(x, order).backward()
        assert x.grad.tolist() == [0, 0, 0]
    x = cd.tensor([2.0, -2.0, 1.0], requires_grad=True)
    cd.linalg.vector_norm(x, math.inf).backward()
    assert x.grad.tolist() == [0.5, -0.5, 0]


@pytest.mark.parametrize("order", [math.inf, -math.inf])
def test_extreme_elements_have_the_gradient_however_they_were_rounded(order: float) -> None:
    """The norm's kernel and that of ``abs`` may round differently, for example if only one is a contributed one."""
    x = cd.randn(300, 7, dtype=cd.complex128, requires_grad=True)
    with cd.library.serve_every_size():
        (gradient,) = cd.autograd.grad(cd.linalg.vector_norm(x, order, -1).sum(), [x])
    assert cd.allclose(gradient.abs().sum(-1), cd.ones(300, dtype=cd.float64))
