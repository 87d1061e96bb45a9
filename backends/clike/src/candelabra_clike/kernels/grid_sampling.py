"""Interpolation at the points of a grid, and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

from candelabra.dtypes import FLOATING

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import Engine, Launch
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.reductions import DtypeSpecialized
from candelabra_clike.kernels.scattering import accumulator_dtype, converted
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source
from candelabra_clike.templates import grid_sampling as template
from candelabra_clike.templates.grid_sampling import BLOCK, CUBIC, GridForm

Modes = tuple[int, int, bool]


def _checked(batch: int, sizes: Shape, grid: StridedArray, mode: int) -> None:
    """Raise if the shapes do not match, for the core to describe the mistake."""
    rank = len(sizes)
    if rank not in (2, 3) or len(grid.shape) != rank + 2 or grid.shape[0] != batch or grid.shape[-1] != rank:
        raise ValueError(f"a grid of shape {grid.shape} does not fit a batch of {batch} of sizes {sizes}")
    if 0 in sizes or (mode == CUBIC and rank == 3):
        raise ValueError(f"an input of sizes {sizes} is not interpolated")


def _form(modes: Modes, sizes: Shape, *arrays: StridedArray) -> GridForm:
    mode, padding, align_corners = modes
    first = arrays[0]
    # The planes of the adjoint are not among the arrays, and coordinates of blocks may pass the last point.
    wide = is_wide(*arrays) or prod(sizes) * prod(first.shape[:2]) >= 1 << 30
    return GridForm(first.dtype, len(sizes), mode, padding, bool(align_corners), first.engine.traits.serial, wide)


def _numbers(grid: StridedArray, channels: int, sizes: Shape) -> tuple[int, ...]:
    """Return the arguments that all kernels have in common."""
    points = prod(grid.shape[1:-1])
    return (grid.offset, channels, points, -(-points // BLOCK), prod(sizes), *sizes)


def _work_items(grid: StridedArray) -> int:
    points = prod(grid.shape[1:-1])
    return grid.shape[0] * (-(-points // BLOCK) if grid.engine.traits.serial else points)


@lru_cache(None)
def _compiled(engine: Engine, text: Callable[[GridForm], Source], form: GridForm) -> Launch:
    return engine.compile(text(form))


def grid_sampler(x: StridedArray, grid: StridedArray, mode: int, padding: int, align_corners: bool) -> StridedArray:
    """Interpolate (N, C, …) at the points of ``grid`` (N, …, 2 or 3)."""
    _checked(x.shape[0], x.shape[2:], grid, mode)
    x, grid, sizes, channels = contiguous(x), contiguous(grid), x.shape[2:], x.shape[1]
    out = x.engine.empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    if out.size:
        launch = _compiled(x.engine, template.sampler, _form((mode, padding, align_corners), sizes, x, grid, out))
        numbers = _numbers(grid, channels, sizes)
        launch(_work_items(grid), out.buffer, x.buffer, grid.buffer, x.offset, *numbers)
    return out


def grid_sampler_grid_gradient(
    grad: StridedArray, x: StridedArray, grid: StridedArray, mode: int, padding: int, align_corners: bool
) -> StridedArray | Any:
    """Return the gradient with respect to ``grid``."""
    _checked(x.shape[0], x.shape[2:], grid, mode)
    if mode == template.NEAREST:
        return NotImplemented  # The gradient is 0, which the composite creates.
    grad, x, grid, sizes = contiguous(grad), contiguous(x), contiguous(grid), x.shape[2:]
    out = x.engine.empty(grid.shape, x.dtype)
    if out.size:
        form = _form((mode, padding, align_corners), sizes, x, grid, grad)
        launch, numbers = _compiled(x.engine, template.grid_gradient, form), _numbers(grid, x.shape[1], sizes)
        arguments = (out.buffer, grad.buffer, x.buffer, grid.buffer, grad.offset, x.offset)
        launch(_work_items(grid), *arguments, *numbers)
    return out


def grid_sampler_adjoint(
    grad: StridedArray, grid: StridedArray, sizes: Shape, mode: int, padding: int, align_corners: bool
) -> StridedArray | Any:
    """Return the gradient with respect to the input. Declines devices whose work-items are lanes."""
    engine, sizes = grad.engine, tuple(sizes)
    if not engine.traits.serial:
        return NotImplemented
    _checked(grad.shape[0], sizes, grid, mode)
    grad, grid, (batch, channels) = contiguous(grad), contiguous(grid), grad.shape[:2]
    out = engine.empty((batch, channels, *sizes), accumulator_dtype(grad.dtype))
    if out.size:
        form = _form((mode, padding, align_corners), sizes, grad, grid, out)
        groups = min(channels, max(1, 4 * engine.traits.compute_units // batch))
        per_item = -(-channels // groups)
        groups = -(-channels // per_item)
        launch, numbers = _compiled(engine, template.adjoint, form), _numbers(grid, channels, sizes)
        arguments = (out.buffer, grad.buffer, grid.buffer, grad.offset, groups, per_item)
        launch(batch * groups, *arguments, *numbers)
    result: StridedArray = out if out.dtype is grad.dtype else converted(out.dtype, grad.dtype)(out)
    return result


def _for(function: Callable[..., Any]) -> DtypeSpecialized:
    return DtypeSpecialized(lambda d: function if d.category == FLOATING else None)


KERNELS: dict[str, Any] = {
    "grid_sampler": _for(grid_sampler), "grid_sampler_adjoint": _for(grid_sampler_adjoint),
    "grid_sampler_grid_gradient": _for(grid_sampler_grid_gradient),
}  # fmt: skip
