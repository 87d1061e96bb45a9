"""Distances of all pairs of points on an OpenCL device, and their gradients; for processors and for GPUs."""

import math
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.library import open_device
from candelabra_clike.kernels import distances, pairs

pytestmark = pytest.mark.rounding

EXPONENTS = (0.0, 0.5, 1.0, 2.0, 3.5, math.inf)
EXACT = "donot_use_mm_for_euclid_dist"


def values(seed: int, *shape: int) -> Any:
    """Return numbers of both signs from a fixed seed."""
    return np.random.default_rng(seed).standard_normal(shape)


def distances_and_gradients(where: Any, d: Any, inputs: Any, weights: Any, p: float) -> list[Any]:
    """Return the distances and both gradients on the host."""
    leaves = [cd.tensor(x).to(where, d).requires_grad_() for x in inputs]
    found = cd.cdist(*leaves, p, EXACT)
    (found * cd.tensor(weights).to(where, d)).sum().backward()
    return [t.detach().numpy(force=True) for t in (found, *[leaf.grad for leaf in leaves])]


CASES = [*(("device", p) for p in EXPONENTS), *(("lanes", p) for p in (2.0, 3.5, math.inf))]


@pytest.mark.parametrize(("form", "p"), CASES)
def test_distances_and_their_gradients(request: pytest.FixtureRequest, form: str, p: float) -> None:
    """Batches broadcast; row lengths are no multiples of a vector; two points are equal, and two share a coordinate."""
    device = request.getfixturevalue(form)
    a, b = values(1, 2, 1, 9, 45), values(2, 3, 11, 45)
    a[0, 0, 3], b[1, 2] = b[1, 5], b[1, 2] * 1.0
    a[1, 0, 4, 7] = b[2, 3, 7]
    a, b = a.astype("f4").astype("f8"), b.astype("f4").astype("f8")
    weights = values(3, 2, 3, 9, 11).astype("f4").astype("f8")
    got, want = (
        distances_and_gradients(where, d, (a, b), weights, p) for where, d in ((device, cd.float32), (None, cd.float64))
    )
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5 * max(1.0, np.abs(w).max()))


@pytest.mark.parametrize("p", EXPONENTS)
def test_special_coordinates(device: cd.device, p: float) -> None:
    """NaN affects only its point; an infinity is far from all others and has no distance to itself."""
    a = np.array([[np.nan, 1.0], [np.inf, 1.0], [2.0, 3.0]], "f4")
    b = np.array([[np.inf, 1.0], [0.0, np.nan], [-np.inf, 0.0], [2.0, 3.0]], "f4")
    got, want = (cd.cdist(cd.tensor(a).to(d), cd.tensor(b).to(d), p, EXACT).numpy(force=True) for d in (device, "cpu"))
    np.testing.assert_array_equal(got, want)
    none = cd.cdist(cd.ones(2, 0, device=device), cd.ones(3, 0, device=device), p)
    assert none.shape == (2, 3)
    assert not none.any().item()


def test_differences_are_not_written_to_memory(device: cd.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest allocation is the result's."""
    instance = open_device(device)
    engine = instance.backend.engine(instance.index)  # type: ignore[attr-defined]
    a, b = (cd.tensor(values(s, 50, 40).astype("f4")).to(device).requires_grad_() for s in (1, 2))
    allocate, sizes = engine.allocate, []

    def counted(nbytes: int) -> Any:
        sizes.append(nbytes)
        return allocate(nbytes)

    monkeypatch.setattr(engine, "allocate", counted)
    cd.cdist(a, b, 3.0).sum().backward()
    assert max(sizes) == 4 * 50 * 50


def pairs_and_gradient(where: Any, d: Any, points: Any, weights: Any, p: float) -> list[Any]:
    """Return the distances of all pairs and the gradient of the points, on the host."""
    x = cd.tensor(points).to(where, d).requires_grad_()
    found = cd.pdist(x, p)
    (found * cd.tensor(weights).to(where, d)).sum().backward()
    return [t.detach().numpy(force=True) for t in (found, x.grad)]


@pytest.mark.parametrize(("form", "p"), CASES)
@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 40), (37, 9), (80, 33)])
def test_distances_of_all_pairs_and_their_gradient(
    request: pytest.FixtureRequest, form: str, p: float, n: int, k: int
) -> None:
    """Sizes are no multiples of a vector, nor of a stretch of coordinates or points; the matrix is transposed; two
    points are equal, and two share a coordinate.
    """
    points = values(4, k, n).astype("f4").astype("f8")
    points[:, -1] = points[:, 0]
    points[0, n // 2] = points[0, 0]
    weights = values(5, n * (n - 1) // 2).astype("f4").astype("f8")
    got, want = (
        pairs_and_gradient(where, d, points.T, weights, p)
        for where, d in ((request.getfixturevalue(form), cd.float32), (None, cd.float64))
    )
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5 * max(1.0, np.abs(w).max()))


@pytest.mark.parametrize("form", ["device", "lanes"])
@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (3, 0)])
def test_few_points_and_points_without_coordinates(
    request: pytest.FixtureRequest, form: str, shape: tuple[int, int]
) -> None:
    """A point alone has no distances and the gradient 0; without coordinates all distances are 0."""
    found, gradient = pairs_and_gradient(
        request.getfixturevalue(form), cd.float32, np.ones(shape), np.ones(shape[0] * (shape[0] - 1) // 2), 2.0
    )
    assert found.tolist() == [0.0] * (shape[0] * (shape[0] - 1) // 2)
    np.testing.assert_array_equal(gradient, np.zeros(shape))


@pytest.mark.parametrize("form", ["device", "lanes"])
def test_an_infinite_coordinate_has_the_gradient_of_its_pairs(request: pytest.FixtureRequest, form: str) -> None:
    """A point is no pair with itself, so the difference of infinities reaches no sum."""
    points = np.array([[np.inf, 1.0], [0.0, 2.0], [1.0, 4.0]])
    found, gradient = pairs_and_gradient(request.getfixturevalue(form), cd.float32, points, np.ones(3), 1.0)
    assert found.tolist() == [math.inf, math.inf, 3.0]
    assert gradient.tolist() == [[2.0, -2.0], [-2.0, 0.0], [0.0, 2.0]]


REFUSALS = [
    ("distances", ((3, 4), (5, 3)), "distances: shapes"),
    ("distances", ((4,), (5, 4)), "distances: shapes"),
    ("distances_backward", ((3, 4), (3, 2), (5, 2), (3, 5)), "distances_backward: shapes"),
    ("distances_backward", ((3, 5), (3, 2), (5, 3), (3, 5)), "distances_backward: shapes"),
    ("pdist", ((3,),), r"pdist: expected a matrix and p >= 0, got shape \(3,\)"),
    ("pdist_backward", ((3,), (3, 2), (2,)), r"pdist_backward: shapes \(3,\), \(3, 2\) and \(2,\) do not match"),
    ("pdist_backward", ((0,), (3,), (0,)), "pdist_backward: shapes"),
]


@pytest.mark.parametrize(("name", "shapes", "text"), REFUSALS)
def test_shapes_that_do_not_fit_are_refused(device: cd.device, name: str, shapes: Any, text: str) -> None:
    """The error is raised before any allocation."""
    payloads = [cd.zeros(*s, device=device)._payload for s in shapes]
    with pytest.raises(RuntimeError, match=text):
        (distances.KERNELS | pairs.KERNELS)[name](*payloads, 2.0)
