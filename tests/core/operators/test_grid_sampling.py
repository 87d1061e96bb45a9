"""Grid sampling, compared with its definition element by element."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import gradcheck, gradgradcheck
from candelabra.library import OPERATORS


@pytest.fixture
def image(rng: np.random.Generator) -> Any:
    """Return one image with one channel, 3 by 4."""
    return rng.normal(size=(1, 1, 3, 4))


@pytest.fixture
def coordinates(rng: np.random.Generator) -> Any:
    """Return the coordinates of 2 by 5 points, some of them outside."""
    return rng.uniform(-1.6, 1.6, size=(1, 2, 5, 2))


def index_of(x: float, size: int, padding: int, align: bool) -> float:
    """Convert a coordinate to an index, clipped or reflected according to the padding."""
    x = (x + 1) / 2 * (size - 1) if align else ((x + 1) * size - 1) / 2
    if padding == 2:
        low, high = (0.0, size - 1.0) if align else (-0.5, size - 0.5)
        while not low <= x <= high:
            x = 2 * low - x if x < low else 2 * high - x
    return x if padding == 0 else min(max(x, 0.0), size - 1.0)


def read(image: Any, where: tuple[int, ...]) -> float:
    """Return an element, or 0 outside."""
    inside = all(0 <= i < s for i, s in zip(where, image.shape, strict=True))
    return float(image[where]) if inside else 0.0


def linear(image: Any, coordinates: list[float]) -> float:
    """Return the adjacent elements weighted by their distances."""
    total = 0.0
    for corner in product((0, 1), repeat=len(coordinates)):
        where = tuple(math.floor(p) + c for p, c in zip(coordinates, corner, strict=True))
        weight = math.prod(1 - abs(p - w) for p, w in zip(coordinates, where, strict=True))
        total += weight * read(image, where)
    return total


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", [0, 1, 2], ids=["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", [0, 1], ids=["linear", "nearest"])
def test_images_are_read_by_their_definition(
    mode: int, padding: int, align: bool, image: Any, coordinates: Any
) -> None:
    """The last dim of the grid is (x, y): x along the width, y along the height."""
    found = cd.grid_sampler(cd.from_numpy(image.copy()), cd.from_numpy(coordinates.copy()), mode, padding, align)
    assert found.shape == (1, 1, 2, 5)
    for i, j in product(range(2), range(5)):
        x, y = coordinates[0, i, j]
        where = [index_of(y, 3, padding, align), index_of(x, 4, padding, align)]
        plane = image[0, 0]
        wanted = linear(plane, where) if mode == 0 else read(plane, tuple(round(p) for p in where))
        assert math.isclose(float(found[0, 0, i, j]), wanted, abs_tol=1e-12)


@pytest.mark.parametrize("padding", [0, 1, 2], ids=["zeros", "border", "reflection"])
def test_volumes_are_read_by_their_definition(padding: int, rng: np.random.Generator) -> None:
    """Three coordinates interpolate between eight elements."""
    volume, grid = rng.normal(size=(2, 3, 2, 3, 4)), rng.uniform(-1.4, 1.4, size=(2, 1, 2, 2, 3))
    found = cd.grid_sampler_3d(cd.from_numpy(volume), cd.from_numpy(grid), 0, padding, False)
    for n, c, i, j in product(range(2), range(3), range(2), range(2)):
        coordinates = [index_of(p, s, padding, False) for p, s in zip(grid[n, 0, i, j][::-1], (2, 3, 4), strict=True)]
        assert math.isclose(float(found[n, c, 0, i, j]), linear(volume[n, c], coordinates), abs_tol=1e-12)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_grid_of_the_elements_themselves_reads_the_image(mode: int, image: Any) -> None:
    """At the centres every interpolation returns the element."""
    ys, xs = np.meshgrid(np.linspace(-1, 1, 3), np.linspace(-1, 1, 4), indexing="ij")
    grid = cd.from_numpy(np.stack([xs, ys], -1)[None])
    found = cd.grid_sampler_2d(cd.from_numpy(image.copy()), grid, mode, 0, True)
    np.testing.assert_allclose(found.numpy(), image, atol=1e-12)


def test_cubic_interpolation_weights_four_neighbours_a_side(rng: np.random.Generator) -> None:
    """The weights are Keys' kernel with A = -0.75, and their sum is 1."""
    row = rng.normal(size=8)
    image = cd.from_numpy(row).expand(1, 1, 8, 8)
    x = (0.1 + 1) / 2 * 7  # Between the elements 3 and 4.
    distances = [x - 2, x - 3, 4 - x, 5 - x]
    outer, inner = ((lambda d: -0.75 * d**3 + 3.75 * d**2 - 6 * d + 3), (lambda d: 1.25 * d**3 - 2.25 * d**2 + 1))
    weights = [f(d) for f, d in zip((outer, inner, inner, outer), distances, strict=True)]
    assert math.isclose(sum(weights), 1)
    found = cd.grid_sampler(image, cd.tensor([[[[0.1, 0.0]]]], dtype=cd.float64), 2, 0, True)
    assert math.isclose(found.item(), float(np.dot(weights, row[2:6])), abs_tol=1e-12)


def test_places_far_outside_and_no_numbers_are_read_too() -> None:
    """Infinity is outside, and NaN is treated as -1."""
    image = cd.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    grid = cd.tensor([[[[math.inf, 0.0], [math.nan, math.nan], [1e30, -1e30]]]])
    assert cd.grid_sampler(image, grid, 0, 0, True).flatten().tolist() == [0.0, 1.0, 0.0]
    assert cd.grid_sampler(image, grid, 1, 1, True).flatten().tolist()[1:] == [1.0, 2.0]


@pytest.mark.parametrize("mode", [0, 2])
@pytest.mark.parametrize("padding", [0, 1, 2])
def test_derivatives_to_second_order(mode: int, padding: int, image: Any, coordinates: Any) -> None:
    """The image and the grid have derivatives."""
    leaves = [cd.from_numpy(a.copy()).requires_grad_() for a in (image, coordinates[:, :, :3])]
    assert gradcheck(lambda a, b: cd.grid_sampler(a, b, mode, padding, False), leaves)
    assert gradgradcheck(lambda a, b: cd.grid_sampler(a, b, mode, padding, False), leaves, fast_mode=True)


def test_an_empty_batch_gives_an_empty_result() -> None:
    """An empty batch of images and grids is accepted."""
    assert cd.grid_sampler(cd.zeros(0, 3, 2, 2), cd.zeros(0, 4, 5, 2), 0, 0, False).shape == (0, 3, 4, 5)


@pytest.mark.parametrize(
    ("image", "grid", "mode", "text"),
    [
        ((2, 3), (2, 3), 0, "expected 4D or 5D input and grid with same number of dimensions"),
        ((2, 3, 4, 4), (1, 3, 4, 2), 0, "expected grid and input to have same batch size"),
        ((2, 3, 4, 4), (2, 3, 4, 3), 0, "expected grid to have size 2 in last dimension"),
        ((2, 3, 0, 4), (2, 3, 4, 2), 0, "expected input to have non-empty spatial dimensions"),
        ((2, 3, 4, 4, 4), (2, 3, 4, 4, 3), 2, "bicubic interpolation only supports 4D input"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(
    image: tuple[int, ...], grid: tuple[int, ...], mode: int, text: str
) -> None:
    """The errors are PyTorch's."""
    with pytest.raises(RuntimeError, match=text):
        cd.grid_sampler(cd.zeros(image), cd.zeros(grid), mode, 0, False)


def test_the_rank_that_a_name_says_is_asked_for() -> None:
    """grid_sampler_2d requires images, grid_sampler_3d volumes."""
    with pytest.raises(RuntimeError, match=r"grid_sampler_3d\(\): expected 5D input"):
        cd.grid_sampler_3d(cd.zeros(1, 1, 2, 2), cd.zeros(1, 2, 2, 2), 0, 0, False)


@pytest.mark.parametrize("padding", [0, 1, 2], ids=["zeros", "border", "reflection"])
@pytest.mark.parametrize("sizes", [(5, 7), (1, 4), (3, 4, 2)], ids=str)
def test_kernels_agree_with_bodies_at_special_points(
    sizes: tuple[int, ...], padding: int, rng: np.random.Generator
) -> None:
    """Values and gradients are those of the composites where points are infinite, NaN, or at the border."""
    x = cd.from_numpy(rng.normal(size=(2, 3, *sizes)))
    grid = rng.uniform(-2, 2, size=(2, *[6] * len(sizes), len(sizes)))
    grid.flat[:5] = [math.nan, math.inf, -math.inf, 1, -1]
    points, g = cd.from_numpy(grid), cd.from_numpy(rng.normal(size=(2, 3, *[6] * len(sizes))))
    calls = {"grid_sampler": (x, points), "grid_sampler_adjoint": (g, points, sizes)}
    calls["grid_sampler_grid_gradient"] = (g, x, points)
    for align, (name, arguments) in product((False, True), calls.items()):
        found = OPERATORS[name](*arguments, 0, padding, align)
        expected = OPERATORS[name].body(*arguments, 0, padding, align)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("padding", [1, 2], ids=["border", "reflection"])
def test_gradients_of_points_at_the_border_are_0(padding: int) -> None:
    """The outermost centres are outside for the derivative, as in PyTorch."""
    image = cd.arange(6.0).reshape(1, 1, 2, 3)
    grid = cd.tensor([[[[1.0, 0.0], [-1.0, 0.5], [0.5, -1.0]]]], requires_grad=True)
    cd.grid_sampler(image, grid, 0, padding, True).sum().backward()
    assert grid.grad is not None
    assert grid.grad.tolist() == [[[[0.0, 1.5], [0.0, 1.5], [1.0, 0.0]]]]
