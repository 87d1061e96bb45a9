"""Linear interpolation at the points of a grid: a sparse matrix times the channels of each element.

Calls with a gradient record the operators of the composite, so this kernel serves inference. It declines other modes.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import in_float32

LINEAR = 0
ZEROS, REFLECTION = 0, 2


def _positions(x: Any, size: int, padding: int, align_corners: bool) -> Any:
    """Return coordinates in [-1, 1] as positions in elements, those outside as the padding mode defines."""
    x = (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2
    if padding == ZEROS:
        return x.clip(-2, size + 1)
    if padding == REFLECTION:
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        span = high - low
        folded = np.fmod(abs(x - low), 2 * span) if span else np.zeros_like(x)
        x = np.where(folded > span, 2 * span - folded, folded) + x.dtype.type(low)
        x = np.where(np.isfinite(x), x, x.dtype.type(0))
    return x.clip(0, size - 1)


def _neighbours(x: Any, size: int) -> list[tuple[Any, Any, Any]]:
    """Return the elements on both sides, where they are inside, and their weights."""
    floor = np.floor(x)
    found = (floor, floor + 1 - x), (floor + 1, x - floor)
    return [(i.clip(0, size - 1).astype(np.intp), (i >= 0) & (i <= size - 1), w) for i, w in found]


def grid_sampler(x: Any, grid: Any, padding: int, align_corners: bool) -> Any:
    """Interpolate (N, C, …) at ``grid`` (N, …, 2 or 3)."""
    from scipy.sparse import csr_array

    batch, channels, *sizes = x.shape
    if grid.ndim != x.ndim or len(sizes) not in (2, 3) or grid.shape[0] != batch or grid.shape[-1] != len(sizes):
        raise ValueError(f"a grid of shape {grid.shape} does not fit an input of shape {x.shape}")
    if 0 in sizes:
        raise ValueError("an input without elements has no neighbours")
    elements, points = batch * prod(sizes), grid.shape[:-1]
    rows = np.zeros((elements + 1, channels), x.dtype)  # The last row is read outside of the input.
    rows[:-1] = np.moveaxis(x, 1, -1).reshape(elements, channels)
    grid = np.where(np.isnan(grid), grid.dtype.type(-1), grid)
    dims = [
        _neighbours(_positions(grid[..., -1 - d], size, padding, align_corners), size) for d, size in enumerate(sizes)
    ]
    first = np.arange(batch).reshape(batch, *[1] * len(sizes))
    index, weight = [], []
    for corner in product(*dims):
        flat, inside, factor = first, True, x.dtype.type(1)
        for (i, within, w), size in zip(corner, sizes, strict=True):
            flat, inside, factor = flat * size + i, inside & within, factor * w
        index.append(np.where(inside, flat, elements))
        weight.append(factor)
    columns, values = np.stack(index, -1), np.stack(weight, -1)
    ends = np.arange(0, columns.size + 1, len(index))
    out = csr_array((values.reshape(-1), columns.reshape(-1), ends), (prod(points), elements + 1)) @ rows
    return np.ascontiguousarray(np.moveaxis(out.reshape(*points, channels), -1, 1))


_kernel = numpy_kernel(in_float32(grid_sampler))


def _declining(x: Any, grid: Any, mode: int, padding: int, align_corners: bool) -> Any:
    return _kernel(x, grid, padding, align_corners) if mode == LINEAR else NotImplemented


KERNELS: dict[str, Any] = {"grid_sampler": _declining}
