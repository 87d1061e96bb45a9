"""References of ``grid_sample`` and of the grids of affine maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference
from candelabra_conformance.references.signals import grid_sampler

Array = np.ndarray[Any, Any]
MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


@reference("nn.functional.grid_sample")
def grid_sample(x: Array, grid: Array, mode: str, padding: str, align_corners: bool) -> Any:
    """Call the record's reference."""
    return grid_sampler(x, grid, MODES[mode], PADDINGS[padding], align_corners)


@reference("affine_grid_generator", "nn.functional.affine_grid", extended=True)
def affine_grid(theta: Array, size: Any, align_corners: bool) -> Any:
    """Map point by point."""
    spatial = size[2:]
    out = np.zeros((size[0], *spatial, len(spatial)), theta.dtype)
    for place in np.ndindex(*spatial):
        point = [theta.dtype.type(1)]
        for position, count in zip(place, spatial, strict=True):
            ends = theta.dtype.type(count - 1 if align_corners else count)
            point.insert(0, (2 * position + (0 if align_corners else 1)) / ends - 1)
        out[(slice(None), *place)] = theta @ np.array(point, theta.dtype)
    return out
