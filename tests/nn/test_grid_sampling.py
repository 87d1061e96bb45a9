"""grid_sample and affine_grid: PyTorch's figures, the identity, gradients, warnings and errors."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.autograd import grad
from candelabra.nn import functional as F

from tests.nn.network_samples import array, check_gradients, normal, tensor


def test_figures_agree_with_torch() -> None:
    """An affine grid and sampled values are those of PyTorch 2.13."""
    theta = tensor(np.array([[[1, 0.5, 0.1], [0, 2, -0.2]]]))
    rows = [[-0.8166667, -1.2], [-0.15, -1.2], [0.5166667, -1.2], [-0.3166667, 0.8], [0.35, 0.8], [1.0166667, 0.8]]
    np.testing.assert_allclose(array(F.affine_grid(theta, (1, 1, 2, 3), False)).reshape(6, 2), rows, atol=1e-6)
    x = tensor((np.arange(35.0).reshape(1, 1, 5, 7) * 13) % 29)
    points = tensor(np.array([[[[0.1, -0.3], [0.9, 1.4]]]]))
    np.testing.assert_allclose(array(F.grid_sample(x, points, align_corners=False)).ravel(), [17.0125, 0], atol=1e-9)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 4, 5, 3)])
def test_the_grid_of_the_identity_selects_every_element(shape: tuple[int, ...], align_corners: bool) -> None:
    """Sampling at the grid of the identity gives the input in every mode."""
    rank = len(shape) - 2
    theta = tensor(np.broadcast_to(np.eye(rank, rank + 1), (2, rank, rank + 1)).copy())
    x = tensor(normal(*shape))
    grid = F.affine_grid(theta, shape, align_corners)
    for mode in ("bilinear", "nearest", *["bicubic"] * (rank == 2)):
        for padding in F.GRID_SAMPLE_PADDING_MODES:
            found = F.grid_sample(x, grid, mode, padding, align_corners)
            np.testing.assert_allclose(array(found), array(x), atol=1e-12)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("sizes", [(1, 7), (130, 520), (3, 40, 600), (2, 1, 5)])
def test_affine_grids_agree_with_the_definition(sizes: tuple[int, ...], align_corners: bool) -> None:
    """A map is applied to the position of each element, the last dim first; single elements are at 0."""
    rank = len(sizes)
    theta = normal(2, rank, rank + 1).astype(np.float32)
    grid = cd.affine_grid_generator(cd.tensor(theta), (2, 3, *sizes), align_corners)
    if align_corners:
        along = [np.linspace(-1, 1, n) if n > 1 else np.zeros(1) for n in sizes]
    else:
        along = [(2 * np.arange(n) + 1 - n) / n for n in sizes]
    points = np.stack([*np.meshgrid(*along, indexing="ij")[::-1], np.ones(sizes)], -1)
    want = np.einsum("...k,nrk->n...r", points, theta.astype(float))
    assert grid.dtype is cd.float32
    np.testing.assert_allclose(array(grid), want, rtol=1e-6, atol=2e-6)


def test_affine_grids_have_derivatives() -> None:
    """The gradient of the matrices is exact, and its own derivative too."""
    for shape in ((2, 1, 3, 4), (2, 1, 2, 3, 2)):
        rank = len(shape) - 2
        check_gradients(lambda t, s=shape: F.affine_grid(t, s, False).pow(2), normal(2, rank, rank + 1))


def test_a_transformer_has_both_derivatives() -> None:
    """Gradients pass through the grid to the matrices, in first and second order."""
    theta = np.array([[[0.9, 0.13, 0.1], [-0.2, 0.8, -0.07]]])
    check_gradients(
        lambda x, t: F.grid_sample(x, F.affine_grid(t, (1, 2, 3, 4), False), align_corners=False),
        normal(1, 2, 5, 4),
        theta,
        second=False,
    )


def test_the_gradient_of_a_grid_with_nearest_is_zero() -> None:
    """As in PyTorch, the gradient is 0 and not absent."""
    grid = tensor(np.zeros((1, 2, 2, 2)), True)
    out = F.grid_sample(tensor(normal(1, 1, 3, 3), True), grid, "nearest", align_corners=False)
    [found] = grad(out.sum(), [grid])
    assert array(found).tolist() == np.zeros((1, 2, 2, 2)).tolist()


def test_the_default_of_align_corners_warns() -> None:
    """PyTorch's warnings about align_corners are raised."""
    with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior has changed"):
        grid = F.affine_grid(cd.ones(1, 2, 3), (1, 1, 2, 2))
    with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior has changed"):
        F.grid_sample(cd.ones(1, 1, 2, 2), grid)
    with pytest.warns(UserWarning, match="behavior has changed for unit-size grids when align_corners=True"):
        F.affine_grid(cd.ones(1, 2, 3), (1, 1, 1, 2), True)


ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda x, g: F.grid_sample(x, g, "cubic"), ValueError, "expected mode to be 'bilinear', 'nearest' or 'bicubic'"),
    (lambda x, g: F.grid_sample(x, g, "nearest", "wrap"), ValueError, "expected padding_mode to be 'zeros', 'border'"),
    (
        lambda x, g: F.grid_sample(x, g.double(), align_corners=True),
        RuntimeError,
        "expected scalar type Float but found Double",
    ),
    (
        lambda x, g: F.affine_grid(g.long(), (1, 1, 2, 2), True),
        ValueError,
        "Expected theta to have floating point",
    ),
    (lambda x, g: F.affine_grid(g, (1, 1, 2), True), NotImplementedError, "affine_grid only supports 4D and 5D sizes"),
    (lambda x, g: F.affine_grid(x, (1, 1, 2, 2), True), ValueError, "2D affine matrices of shape Nx2x3 for size"),
    (lambda x, g: F.affine_grid(x, (1, 1, 2, 2, 2), True), ValueError, "3D affine matrices of shape Nx3x4 for size"),
    (
        lambda x, g: F.affine_grid(cd.ones(1, 2, 3), (1, 1, 0, 2), False),
        ValueError,
        "Expected non-zero, positive output size",
    ),
    (
        lambda x, g: cd.affine_grid_generator(cd.ones(1, 2, 3), (1, 1, 2), False),
        RuntimeError,
        "AffineGridGenerator needs 4d .spatial. or 5d .volumetric. inputs",
    ),
    (
        lambda x, g: cd.affine_grid_generator(cd.ones(1, 2, 3), (2, 1, 2, 2), False),
        RuntimeError,
        r"expected theta to have shape \[2, 2, 3\] for size \[2, 1, 2, 2\], but got \[1, 2, 3\]",
    ),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_grids_refuse_arguments_that_do_not_match(case: int) -> None:
    """Bad arguments raise PyTorch's error class with its text."""
    call, error, text = ERRORS[case]
    with pytest.raises(error, match=text):
        call(cd.ones(1, 1, 2, 2), cd.ones(1, 2, 2, 2))
