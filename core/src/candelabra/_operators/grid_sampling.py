"""Interpolation of images and volumes at the points of a grid: ``grid_sampler``, which ``grid_sample`` of networks
calls, and the grids of affine maps.

A point has a coordinate per spatial dim, the last dim of the input first, in [-1, 1] from one end to the other. Source:
Jaderberg et al., Spatial transformer networks, 2015; the cubic kernel (A = -0.75) is Keys', 1981.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from math import prod

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.elementwise.selection import where
from candelabra._operators.shapes.joining import cat, stack
from candelabra._records.autocasting import Autocast
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import int64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra._tensor import Tensor
    from candelabra.typing import Shape

Ints = tuple[int, ...]
LINEAR, NEAREST, CUBIC = 0, 1, 2
ZEROS, BORDER, REFLECTION = 0, 1, 2
A: Final = -0.75


def _sampler_shape(input: Tensor, grid: Tensor, interpolation_mode: int, *_: Any) -> Ints:
    a, g = shape_of(input), shape_of(grid)
    rank, sizes = len(a) - 2, f"but got input with sizes {list(a)} and grid with sizes {list(g)}"
    if rank not in (2, 3) or len(g) != len(a):
        raise RuntimeError(f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, {sizes}")
    if a[0] != g[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {sizes}")
    if g[-1] != rank:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {rank} in last dimension, {sizes}")
    if 0 in a[2:]:
        raise RuntimeError(f"grid_sampler(): expected input to have non-empty spatial dimensions, {sizes}")
    if interpolation_mode == CUBIC and rank != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    return (*a[:2], *g[1:-1])


def _shape_of_rank(rank: int, input: Tensor, *rest: Any) -> Ints:
    if len(shape_of(input)) != rank + 2:
        raise RuntimeError(
            f"grid_sampler_{rank}d(): expected {rank + 2}D input, but got input with sizes {list(shape_of(input))}"
        )
    return _sampler_shape(input, *rest)


@operator(by(_sampler_shape), accepts="real floating", method=False, out=False, autocast=Autocast("widest", "float32"))
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Return ``input`` (N, C, H, W) or (N, C, D, H, W) interpolated at the points ``grid`` (N, …, 2 or 3).

    ``interpolation_mode``: 0 linear, 1 nearest, 2 cubic (images only). ``padding_mode`` defines the values outside of
    the input: 0 zeros, 1 those of the border, 2 reflected ones. With ``align_corners``, -1 and 1 are the centres of the
    outermost elements, otherwise their outer edges. A NaN coordinate is -1. Raises ``RuntimeError`` for shapes that do
    not match.
    """
    _sampler_shape(input, grid, interpolation_mode)
    sizes, points = tuple(input.shape[2:]), where(grid.isnan(), -1, grid)
    positions = [_unnormalized(c, s, align_corners) for c, s in zip(reversed(points.unbind(-1)), sizes, strict=True)]
    if interpolation_mode == CUBIC:
        return _cubic(_rows(input), positions, sizes, padding_mode, align_corners).movedim(-1, 1).contiguous()
    positions = [_padded(x, s, padding_mode, align_corners) for x, s in zip(positions, sizes, strict=True)]
    if interpolation_mode == NEAREST:
        nearest = [x.round() for x in positions]
        out = _read(_rows(input), nearest, sizes).movedim(-1, 1)
        # The result does not depend on the grid, whose gradient is then 0 and not absent.
        return out + (nearest[0] - nearest[0].detach()).unsqueeze(1) if grid.requires_grad else out
    return _linear(_rows(input), positions, sizes).movedim(-1, 1).contiguous()


@operator(
    by(lambda *args: _shape_of_rank(2, *args)),
    accepts="real floating",
    method=False,
    out=False,
    autocast=Autocast(host="float32"),
)
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Interpolate with :func:`candelabra.grid_sampler` images (N, C, H, W)."""
    _shape_of_rank(2, input, grid, interpolation_mode)
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@operator(
    by(lambda *args: _shape_of_rank(3, *args)),
    accepts="real floating",
    method=False,
    out=False,
    autocast=Autocast(host="float32"),
)
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Interpolate with :func:`candelabra.grid_sampler` volumes (N, C, D, H, W)."""
    _shape_of_rank(3, input, grid, interpolation_mode)
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


# -- grids ------------------------------------------------------------------------------------------------------------
def _affine_shape(theta: Tensor, size: Any, align_corners: bool) -> Ints:
    shape, sizes = shape_of(theta), tuple(size)
    if len(sizes) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    rank = len(sizes) - 2
    if shape != (sizes[0], rank, rank + 1):
        raise RuntimeError(
            f"affine_grid_generator(): expected theta to have shape {[sizes[0], rank, rank + 1]} for size "
            f"{list(sizes)}, but got {list(shape)}"
        )
    return (sizes[0], *sizes[2:], rank)


@operator(by(_affine_shape), accepts="real floating", method=False, out=False)
def affine_grid_generator(theta: Tensor, size: Shape, align_corners: bool) -> Tensor:
    """Return the grid (N, …, 2 or 3) of affine maps ``theta`` (N, 2, 3) or (N, 3, 4) for a result of the given size.

    ``size`` is (N, C, H, W) or (N, C, D, H, W). The points of the grid are the elements of the result, mapped by
    ``theta``. Raises ``RuntimeError`` for shapes that do not match.
    """
    sizes = tuple(size)  # type: ignore[arg-type]
    shape = _affine_shape(theta, sizes, align_corners)
    spatial = sizes[2:]
    columns = []
    for dim in range(len(spatial) - 1, -1, -1):
        count = spatial[dim]
        position = new_arange(theta, 0, 1, count, dtype=theta.dtype)
        if align_corners:
            position = position * (2 / (count - 1)) - 1 if count > 1 else position
        else:
            position = (position * 2 + (1 - count)) / count
        columns.append(position.reshape([count if i == dim else 1 for i in range(len(spatial))]).expand(spatial))
    points = stack([*columns, theta.new_ones(spatial)], -1).reshape((1, prod(spatial), len(spatial) + 1))
    return (points @ theta.transpose(1, 2)).reshape(shape)


# -- coordinates ------------------------------------------------------------------------------------------------------
def _unnormalized(x: Tensor, size: int, align_corners: bool) -> Tensor:
    """Return coordinates in [-1, 1] as positions in elements, relative to the centre of the first element."""
    return (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2


def _padded(x: Tensor, size: int, padding: int, align_corners: bool) -> Tensor:
    """Return positions with those outside of the input replaced by positions inside, as the padding mode defines.

    With zeros as padding, positions are only clamped to a distance at which the result is 0.
    """
    if padding == ZEROS:
        return x.clamp(-2, size + 1)
    if padding == REFLECTION:
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        if low == high:
            x = x * 0
        else:
            folded = (x - low).abs().fmod(2 * (high - low))
            x = where(folded > high - low, 2 * (high - low) - folded, folded) + low
        x = where(x.isfinite(), x, 0)
    return x.clamp(0, size - 1)


def _rows(input: Tensor) -> Tensor:
    """Return the channels of each element as a row, so that an index copies adjacent memory, and a last row of 0."""
    return cat([input.movedim(1, -1).reshape((-1, input.shape[1])), input.new_zeros((1, input.shape[1]))])


def _read(rows: Tensor, positions: Sequence[Tensor], sizes: Ints) -> Tensor:
    """Return the channels at integer positions, given as a tensor (N, …) per spatial dim, and 0 outside: (N, …, C)."""
    inside: Any = None
    batch = positions[0].shape[0]
    shape = (batch, *[1] * (positions[0].ndim - 1))
    flat: Any = new_arange(rows, 0, 1, batch, dtype=int64).reshape(shape)
    for x, size in zip(positions, sizes, strict=True):
        within = (x >= 0) & (x <= size - 1)
        inside = within if inside is None else inside & within
        flat = flat * size + x.detach().clamp(0, size - 1).to(int64)
    index = where(inside, flat, rows.shape[0] - 1).reshape((-1,))
    return rows.index_select(0, index).reshape((*flat.shape, rows.shape[1]))


# -- interpolation ----------------------------------------------------------------------------------------------------
def _linear(rows: Tensor, positions: Sequence[Tensor], sizes: Ints) -> Tensor:
    """Return the neighbours on both sides in each dim, weighted by their distances."""
    floors = [x.detach().floor() for x in positions]
    terms = []
    for corner in product((0, 1), repeat=len(positions)):
        weights = [x - f if c else f + 1 - x for x, f, c in zip(positions, floors, corner, strict=True)]
        neighbour = _read(rows, [f + c for f, c in zip(floors, corner, strict=True)], sizes)
        terms.append(neighbour * reduce(lambda a, b: a * b, weights).unsqueeze(-1))
    return reduce(lambda a, b: a + b, terms)


def _cubic(rows: Tensor, positions: Sequence[Tensor], sizes: Ints, padding: int, align_corners: bool) -> Tensor:
    """Return the sum of sixteen neighbours, whose positions are padded, weighted by Keys' kernel."""
    floors = [x.detach().floor() for x in positions]
    weights = [_keys(x - f) for x, f in zip(positions, floors, strict=True)]
    steps = [
        [_padded(f + (i - 1), s, padding, align_corners) for i in range(4)] for f, s in zip(floors, sizes, strict=True)
    ]
    terms = [
        _read(rows, [steps[0][i], steps[1][j]], sizes) * (weights[0][i] * weights[1][j]).unsqueeze(-1)
        for i, j in product(range(4), repeat=2)
    ]
    return reduce(lambda a, b: a + b, terms)


def _keys(t: Tensor) -> list[Tensor]:
    """Return the weights of the neighbours at distance 1 + t, t, 1 - t and 2 - t."""

    def inner(x: Tensor) -> Tensor:
        return ((A + 2) * x - (A + 3)) * x * x + 1

    def outer(x: Tensor) -> Tensor:
        return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A

    return [outer(t + 1), inner(t), inner(1 - t), outer(2 - t)]
