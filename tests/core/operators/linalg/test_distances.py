"""Distances of all pairs and of rows, cosines, cross products: compared with SciPy and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._records.registry import OPERATORS
from candelabra.autograd import gradcheck, gradgradcheck
from scipy.spatial import distance

NORMS = [0.0, 0.5, 1.0, 2.0, 2.5, 3.0, inf]
NO_PRODUCT = "donot_use_mm_for_euclid_dist"


def points(rng: np.random.Generator, *shape: int) -> Any:
    """Return normal numbers in float64."""
    return rng.standard_normal(shape)


def by_hand(a: Any, b: Any, p: float) -> Any:
    """Compute the definition pair by pair."""
    d = np.abs(a[..., :, None, :] - b[..., None, :, :])
    if p == 0:
        return (d != 0).sum(-1).astype(d.dtype)
    return d.max(-1) if p == inf else (d**p).sum(-1) ** (1 / p)


def close(actual: Any, expected: Any, tolerance: float = 1e-9) -> None:
    """Assert that shape and values are equal."""
    assert tuple(actual.shape) == np.shape(expected)
    np.testing.assert_allclose(actual.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("p", NORMS)
def test_cdist_is_the_norm_of_every_difference(p: float, rng: np.random.Generator) -> None:
    """Small and large numbers of points, batches that broadcast, with and without recording."""
    for a, b in (
        (points(rng, 4, 3), points(rng, 5, 3)),
        (points(rng, 2, 1, 4, 3), points(rng, 3, 2, 3)),
        (points(rng, 30, 2), points(rng, 3, 2)),
    ):
        x, y = cd.tensor(a), cd.tensor(b)
        close(cd.cdist(x, y, p), by_hand(a, b, p))
        close(cd.cdist(x.requires_grad_(), y, p, NO_PRODUCT), by_hand(a, b, p))
    np.testing.assert_allclose(by_hand(points(rng, 2, 3), points(rng, 2, 3) * 0, 2.0).shape, (2, 2))


def test_cdist_is_scipys(rng: np.random.Generator) -> None:
    """Euclidean, city block and Chebyshev distances agree, with a matrix product and without."""
    a, b = points(rng, 30, 7), points(rng, 40, 7)
    for p, name in ((2.0, "euclidean"), (1.0, "cityblock"), (inf, "chebyshev")):
        close(cd.cdist(cd.tensor(a), cd.tensor(b), p), distance.cdist(a, b, name))
    exact = cd.cdist(cd.tensor(a), cd.tensor(b), compute_mode=NO_PRODUCT)
    close(exact, distance.cdist(a, b), 1e-14)
    close(cd.cdist(cd.tensor(a[:2]), cd.tensor(b), compute_mode="use_mm_for_euclid_dist"), distance.cdist(a[:2], b))


def test_distances_of_nothing_are_zeros() -> None:
    """An empty set of points has no distances; points without coordinates have distance 0."""
    assert cd.cdist(cd.zeros(0, 3), cd.zeros(2, 3)).shape == (0, 2)
    assert cd.cdist(cd.zeros(2, 0), cd.zeros(3, 0)).tolist() == [[0.0] * 3] * 2
    assert cd.cdist(cd.zeros(0, 2, 3), cd.zeros(0, 4, 3)).shape == (0, 2, 4)
    assert cd.pdist(cd.zeros(1, 3)).shape == (0,)
    assert cd.pdist(cd.zeros(0, 3)).shape == (0,)
    assert cd.pdist(cd.zeros(3, 0)).tolist() == [0.0] * 3


def test_half_types_are_measured_in_float32() -> None:
    """The distance of (0, …) and (1, …) in 1,000 dims for p = 1 is 1000, which a sum in bfloat16 does not reach."""
    for dtype in (cd.float16, cd.bfloat16):
        actual = cd.cdist(cd.zeros(1, 1000, dtype=dtype), cd.ones(1, 1000, dtype=dtype), 1.0)
        assert (actual.dtype, actual.item()) == (dtype, 1000)


@pytest.mark.parametrize("p", NORMS[1:])
def test_cdist_has_gradients_of_both_orders(p: float, rng: np.random.Generator) -> None:
    """Both arguments have gradients in every norm and mode."""
    leaves = [cd.tensor(points(rng, 2, 3, 2), requires_grad=True), cd.tensor(points(rng, 2, 2), requires_grad=True)]
    modes = ("use_mm_for_euclid_dist", NO_PRODUCT) if p == 2 else (NO_PRODUCT,)
    for mode in modes:
        call = lambda a, b, m=mode: cd.cdist(a, b, p, m)  # noqa: E731 - used twice, below
        assert gradcheck(call, leaves, fast_mode=True)
        assert gradgradcheck(call, leaves, fast_mode=True)


@pytest.mark.parametrize("p", NORMS)
def test_where_points_meet_the_slope_is_0(p: float) -> None:
    """The gradient of a distance of 0 is 0 and not NaN, by the kernel and by the composite."""
    x = cd.tensor([[1.0, 2.0], [1.0, 2.0]], requires_grad=True)
    cd.cdist(x, x, p, NO_PRODUCT).sum().backward()
    assert x.grad.abs().sum().item() == 0
    x.grad = None
    cd.pdist(x, p).sum().backward()
    assert x.grad.abs().sum().item() == 0


def test_the_kernel_of_the_gradient_is_the_composite(rng: np.random.Generator) -> None:
    """The device's result equals that of the record's body in every norm."""
    g, a, b = (cd.tensor(points(rng, *s)) for s in ((2, 4, 5), (2, 4, 3), (1, 5, 3)))
    record = OPERATORS["distances_backward"]
    for p in NORMS:
        out = cd.cdist(a, b, p, NO_PRODUCT)
        close(record(g, a, b, out, p), record.body(g, a, b, out, p).numpy())


@pytest.mark.parametrize("p", NORMS)
def test_pdist_is_the_upper_triangle_of_cdist(p: float, rng: np.random.Generator) -> None:
    """Odd and even numbers of points are correct; the gradient is that of cdist."""
    for n in (2, 3, 6, 7):
        a = points(rng, n, 3)
        expected = by_hand(a, a, p)[np.triu_indices(n, 1)]
        close(cd.pdist(cd.tensor(a), p), expected)
        x = cd.tensor(a, requires_grad=True)
        close(cd.pdist(x, p), expected)
    if p:
        assert gradcheck(lambda t: cd.pdist(t, p), (x,), fast_mode=True)


def test_pairwise_distance_goes_row_by_row(rng: np.random.Generator) -> None:
    """A small number is added to each difference, as PyTorch documents."""
    a, b = points(rng, 4, 3), points(rng, 1, 3)
    close(cd.pairwise_distance(cd.tensor(a), cd.tensor(b)), np.linalg.norm(a - b + 1e-6, axis=-1))
    actual = cd.pairwise_distance(cd.tensor(a), cd.tensor(b), p=1.0, eps=0.0, keepdim=True)
    close(actual, np.abs(a - b).sum(-1, keepdims=True))


def test_cosine_similarity_is_the_cosine_of_the_angle(rng: np.random.Generator) -> None:
    """Any dim, broadcast shapes, integers and complex numbers work; a length of 0 gives 0 and a finite gradient."""
    a, b = points(rng, 2, 3, 4), points(rng, 3, 1)
    full = np.broadcast_to(b, a.shape)
    for dim in (0, 1, -1):
        expected = (a * full).sum(dim) / np.linalg.norm(a, axis=dim) / np.linalg.norm(full, axis=dim)
        close(cd.cosine_similarity(cd.tensor(a), cd.tensor(b), dim=dim), expected)
    assert cd.cosine_similarity(cd.tensor([3, 4]), cd.tensor([3, 4]), dim=0).item() == pytest.approx(1.0)
    x = cd.zeros(3, dtype=cd.float64, requires_grad=True)
    actual = cd.cosine_similarity(x, cd.ones(3, dtype=cd.float64), dim=0)
    actual.backward()
    assert actual.item() == 0
    assert x.grad.isfinite().all()
    leaves = [cd.tensor(points(rng, 2, 3), requires_grad=True) for _ in range(2)]
    assert gradcheck(cd.cosine_similarity, leaves, fast_mode=True)
    assert gradgradcheck(cd.cosine_similarity, leaves, fast_mode=True)


@pytest.mark.parametrize("d", [cd.float16, cd.bfloat16, cd.float32])
def test_cosine_similarity_of_zeros_is_0_in_every_dtype(d: cd.dtype) -> None:
    """The default epsilon underflows in float16; it is raised, so that 0 / 0 does not occur."""
    zeros, ones = cd.zeros(1, 3, dtype=d), cd.ones(1, 3, dtype=d)
    assert cd.cosine_similarity(zeros, ones).tolist() == [0]


def test_cross_is_numpys(rng: np.random.Generator) -> None:
    """The dim is passed, or the first of size 3; shapes broadcast; integers, complex numbers and out= are supported."""
    a, b = points(rng, 2, 3, 4), points(rng, 1, 3, 4)
    close(cd.cross(cd.tensor(a), cd.tensor(b)), np.cross(a, b, axis=1))
    a, b = points(rng, 3, 3), points(rng, 3, 3) * 1j
    close(cd.tensor(a).cross(cd.tensor(b)), np.cross(a, b, axis=0))
    close(cd.cross(cd.tensor(a), cd.tensor(b), dim=-1), np.cross(a, b))
    actual = cd.cross(cd.tensor([1, 0, 0]), cd.tensor([0, 1, 0]), out=cd.empty(0, dtype=cd.int64))
    assert actual.tolist() == [0, 0, 1]
    assert cd.cross(cd.zeros(0, 3), cd.zeros(0, 3), dim=1).shape == (0, 3)


X = cd.ones(2, 4)
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: cd.cdist(X, X, compute_mode="fast"), ValueError, "fast is not a valid value for compute_mode"),
    (lambda: cd.cdist(cd.ones(3), X), RuntimeError, "cdist only supports at least 2D tensors, X1 got: 1D"),
    (lambda: cd.cdist(X, cd.ones(3)), RuntimeError, "cdist only supports at least 2D tensors, X2 got: 1D"),
    (lambda: cd.cdist(X.int(), X), RuntimeError, "cdist only supports floating-point dtypes, X1 got: Int"),
    (lambda: cd.cdist(X, cd.ones(2, 3)), RuntimeError, "the same number of columns. X1: 4 X2: 3"),
    (lambda: cd.cdist(X, X, -1), RuntimeError, "cdist only supports non-negative p values"),
    (lambda: cd.pdist(cd.ones(3)), RuntimeError, "pdist only supports 2D tensors, got: 1D"),
    (lambda: cd.pdist(X.int()), RuntimeError, "pdist only supports floating-point dtypes"),
    (lambda: cd.pdist(X, -1.0), RuntimeError, "pdist only supports non-negative p values"),
    (lambda: cd.cosine_similarity(X * 1j, X), NotImplementedError, "not implemented for 'ComplexFloat'"),
    (lambda: cd.cross(X, X), RuntimeError, "no dimension of size 3 in input"),
    (lambda: cd.cross(X, X, 1), RuntimeError, "inputs dimension 1 must have length 3. Got 4 and 4"),
    (lambda: cd.cross(cd.ones(3), cd.ones(1, 3)), RuntimeError, "inputs must have the same number of dimensions"),
    (lambda: cd.cross(X, X, 2), IndexError, "Dimension out of range"),
]


@pytest.mark.parametrize(("call", "error", "text"), ERRORS, ids=[f"{n}" for n in range(len(ERRORS))])
def test_bad_points_are_errors_in_pytorchs_words(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    """Every invalid call has PyTorch's class of error and its text."""
    with pytest.raises(error, match=text):
        call()


def test_lengths_of_half_types_do_not_overflow() -> None:
    """300 squared overflows in float16, but the cosine of a vector with itself is 1."""
    x = cd.full((1000,), 300.0, dtype=cd.float16)
    assert cd.cosine_similarity(x, x, dim=0).item() == pytest.approx(1.0, abs=2e-3)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 2.5, float("inf")])
@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33, 50])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_pdist_of_any_number_of_points_is_the_norm_of_each_difference(
    name: str, n: int, p: float, rng: np.random.Generator
) -> None:
    """Blocks of rows include every pair, whether or not the block size divides the number of points."""
    points = rng.integers(-3, 4, (n, 3)).astype(name)
    want = [np.linalg.norm(points[i] - points[j], p) for i in range(n) for j in range(i + 1, n)]
    actual = cd.pdist(cd.tensor(points), p)
    assert actual.dtype == getattr(cd, name)
    np.testing.assert_allclose(actual.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_pdist_says_nan_and_infinity(p: float) -> None:
    """A NaN coordinate makes its distances NaN, an infinite one makes them infinite."""
    points = cd.tensor([[0.0, 1.0], [float("nan"), 2.0], [float("inf"), 0.0]])
    np.testing.assert_array_equal(cd.pdist(points, p).numpy(), [np.nan, np.inf, np.nan])
