"""Interpolation of images and volumes at the points of a grid, as spatial transformer networks do."""

from __future__ import annotations

import warnings

from candelabra.library import public, record
from candelabra.nn._functional.grid_modes import GRID_SAMPLE_INTERPOLATION_MODES, GRID_SAMPLE_PADDING_MODES
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Sequence, Tensor

grid_sampler, affine_grid_generator = record("grid_sampler"), record("affine_grid_generator")


def _corners(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
            "specify align_corners=True if the old behavior is desired. See the documentation of grid_sample for "
            "details.",
            stacklevel=4,
        )
    return bool(align_corners)


@public(namespace="nn.functional")
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Interpolate (N, C, H, W) or (N, C, D, H, W) at the points ``grid`` (N, …, 2 or 3), in [-1, 1].

    ``mode`` is bilinear (trilinear in volumes), nearest or, for images, bicubic. ``padding_mode`` defines the values
    outside of the input: zeros, border or reflection. With ``align_corners``, -1 and 1 are the centres of the outermost
    elements, otherwise their outer edges. A point gives its coordinate along the last dim first.
    """
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    modes = GRID_SAMPLE_INTERPOLATION_MODES[mode], GRID_SAMPLE_PADDING_MODES[padding_mode]
    corners = _corners(align_corners)
    if grid.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.title} but found {grid.dtype.title}")
    return grid_sampler(input, grid, *modes, corners)  # type: ignore[no-any-return]


@public(namespace="nn.functional")
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Return the grid for :func:`grid_sample` that maps a result of the given size by affine matrices.

    ``theta`` (N, 2, 3) and ``size`` (N, C, H, W) give (N, H, W, 2); (N, 3, 4) and (N, C, D, H, W) give (N, D, H, W, 3).
    """
    corners = _corners(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    sizes: Any = tuple(size)
    if len(sizes) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    rank = len(sizes) - 2
    if theta.ndim != 3 or tuple(theta.shape[1:]) != (rank, rank + 1):
        raise ValueError(
            f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size {size}. Got "
            f"{theta.shape}."
        )
    if corners and min(sizes[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This "
            "is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=3,
        )
    elif min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return affine_grid_generator(theta, sizes, corners)  # type: ignore[no-any-return]
