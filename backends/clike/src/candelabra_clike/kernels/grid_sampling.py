"""Interpolation at the points of a grid, its gradients, and the grids of affine maps."""

from __future__ import annotations

from math import prod
from typing import Any

from candelabra.dtypes import dtype

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.engine import compiled
from candelabra_clike.kernels.copies import contiguous
from candelabra_clike.kernels.reductions import of_floating, of_single_and_double
from candelabra_clike.kernels.scattering import accumulator_dtype
from candelabra_clike.language import INDEX, Value, Variable, cast
from candelabra_clike.language.kernels import KernelBuilder, built
from candelabra_clike.layouts import is_wide
from candelabra_clike.source import Source
from candelabra_clike.templates import grid_sampling as template
from candelabra_clike.templates.elementwise.elementwise import cast_kernel
from candelabra_clike.templates.grid_sampling import BLOCK, CUBIC, GridForm
from candelabra_clike.templates.index_walker import each_coordinate

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


def grid_sampler(x: StridedArray, grid: StridedArray, mode: int, padding: int, align_corners: bool) -> StridedArray:
    """Interpolate (N, C, …) at the points of ``grid`` (N, …, 2 or 3)."""
    _checked(x.shape[0], x.shape[2:], grid, mode)
    x, grid, sizes, channels = contiguous(x), contiguous(grid), x.shape[2:], x.shape[1]
    out = x.engine.empty((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    if out.size:
        launch = compiled(x.engine, template.sampler, _form((mode, padding, align_corners), sizes, x, grid, out))
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
        launch, numbers = compiled(x.engine, template.grid_gradient, form), _numbers(grid, x.shape[1], sizes)
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
        launch, numbers = compiled(engine, template.adjoint, form), _numbers(grid, channels, sizes)
        arguments = (out.buffer, grad.buffer, grid.buffer, grad.offset, groups, per_item)
        launch(batch * groups, *arguments, *numbers)
    result: StridedArray = out if out.dtype is grad.dtype else cast_kernel(out.dtype, grad.dtype)(out)
    return result


GRAIN = 4096
"""Points that a work-item computes on serial devices."""


@built("affine_grid_generator")
def affine_source(d: dtype, rank: int, align_corners: bool, serial: bool, wide: bool) -> Source:
    """Return the kernel in which a work-item computes the points of some rows along the last dim, or one point."""
    k = KernelBuilder(f"affine_grid{rank}d_{'corners_' * align_corners}{d.name}", wide)
    out, theta = k.writes("out", d), k.reads("theta", d)
    theta_at, rows, per_item, dims = *k.numbers("theta_at", "rows", "per_item"), range(rank)
    sizes = [k.number(f"size{i}", "i32") for i in dims]
    factors, shifts = ([k.number(f"{name}{i}", out.type) for i in dims] for name in ("factor", "shift"))
    last, columns = rank - 1, rank + 1

    def position(dim: int, i: Value) -> Value:
        """Return the place in [-1, 1] of element ``i`` along a dim."""
        number = cast(out.type, i)
        return number * factors[dim] + shifts[dim] if align_corners else (number * 2 + shifts[dim]) / factors[dim]

    def points(row: Value) -> tuple[list[Variable], list[Variable]]:
        """Declare the coefficients of the points of a row: those of the place along the last dim, and the rest."""
        rest, places = k.variable("rest", row), {}
        for dim, at in each_coordinate(k, rest, [cast(INDEX, size) for size in sizes[:last]], outermost=False):
            places[dim] = k.let(f"place{dim}", position(dim, at))
        of_map = k.pointer("of_map", theta, theta_at + rest * (rank * columns))
        slopes, origins = [], []
        for i in dims:
            origin = of_map[i * columns + rank]
            for dim, place in places.items():
                origin = origin + of_map[i * columns + last - dim] * place
            slopes.append(k.let(f"slope{i}", of_map[i * columns]))
            origins.append(k.let(f"origin{i}", origin))
        return slopes, origins

    if serial:
        with k.share("row", rows, per_item) as row:
            slopes, origins = points(row)
            to = k.pointer("to", out, row * cast(INDEX, sizes[last]) * rank)
            with k.loop("i", 0, sizes[last], independent=True) as i:
                x = k.let("x", position(last, i))
                for n in dims:
                    to[i * rank + n] = slopes[n] * x + origins[n]
        return k.source(group=1, contract=True)
    length = cast(INDEX, sizes[last])
    slopes, origins = points(k.let("row", k.item // length))
    x = k.let("x", position(last, k.item % length))
    for n in dims:
        out[k.item * rank + n] = slopes[n] * x + origins[n]
    return k.source(contract=True)


def affine_grid_generator(theta: StridedArray, size: Shape, align_corners: bool) -> Any:
    """The points of the grids in one launch."""
    engine, spatial, rank = theta.engine, tuple(size[2:]), len(size) - 2
    if rank not in (2, 3) or theta.shape != (size[0], rank, rank + 1) or max(spatial) >= 1 << 31:
        return NotImplemented  # for the body, which also says what is wrong
    theta, out = contiguous(theta), engine.empty((size[0], *spatial, rank), theta.dtype)
    if not out.size:
        return out
    if align_corners:  # a single element is at 0
        factors, shifts = [2 / max(n - 1, 1) for n in spatial], [0.0 if n == 1 else -1.0 for n in spatial]
    else:
        factors, shifts = [float(n) for n in spatial], [1.0 - n for n in spatial]
    rows = size[0] * prod(spatial[:-1])
    per_item = max(1, GRAIN // spatial[-1])
    items = -(-rows // per_item) if engine.traits.serial else rows * spatial[-1]
    serial = engine.traits.serial
    compiled(engine, affine_source, theta.dtype, rank, bool(align_corners), serial, is_wide(theta, out))(
        items, out.buffer, theta.buffer, theta.offset, rows, per_item, *spatial, *factors, *shifts
    )
    return out


KERNELS: dict[str, Any] = {
    "affine_grid_generator": of_single_and_double(affine_grid_generator),
    **{f.__name__: of_floating(f) for f in (grid_sampler, grid_sampler_adjoint, grid_sampler_grid_gradient)},
}
