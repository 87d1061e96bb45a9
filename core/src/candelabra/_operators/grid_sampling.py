"""Interpolation of images and volumes at the points of a grid: ``grid_sampler``, which ``grid_sample`` of networks
calls, and the grids of affine maps.

A point has a coordinate per spatial dim, the last dim of the input first, in [-1, 1] from one end to the other. Source:
Jaderberg et al., Spatial transformer networks, 2015; the cubic kernel (A = -0.75) is Keys', 1981.
"""

from __future__ import annotations

from functools import reduce
from itertools import product
from math import prod
from operator import mul

from candelabra._annotations import TYPE_CHECKING, Any, Final, NamedTuple
from candelabra._operators.creation.filled import new_full
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
    if input.dtype.is_half:
        wide = grid_sampler(input.float(), grid.float(), interpolation_mode, padding_mode, align_corners)
        return wide.to(input.dtype)
    sizes, rows = tuple(input.shape[2:]), _rows(input)
    taps = _taps(grid, sizes, interpolation_mode, padding_mode, align_corners)
    out: Any = None
    for neighbours in product(*taps):
        value = _read(rows, _index(neighbours, sizes)) * _weight(neighbours).unsqueeze(-1)
        out = value if out is None else out + value
    return out.movedim(-1, 1).contiguous()


def _adjoint_shape(grad: Tensor, grid: Tensor, sizes: Ints, *_: Any) -> Ints:
    return (*shape_of(grad)[:2], *sizes)


@operator(by(_adjoint_shape), accepts="real floating", method=False, public=False, out=False)
def grid_sampler_adjoint(
    grad: Tensor, grid: Tensor, sizes: Ints, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """The adjoint of :func:`grid_sampler`: adds ``grad`` (N, C, …), times the weights, to the elements of an input.

    ``sizes`` are the spatial sizes of the result. Half types compute in float32.
    """
    if grad.dtype.is_half:
        modes = interpolation_mode, padding_mode, align_corners
        return grid_sampler_adjoint(grad.float(), grid.float(), sizes, *modes).to(grad.dtype)
    batch, channels = grad.shape[:2]
    rows = grad.movedim(1, -1)
    total: Any = grad.new_zeros((batch * prod(sizes) + 1, channels))  # The last row is outside of the input.
    for neighbours in product(*_taps(grid, sizes, interpolation_mode, padding_mode, align_corners)):
        values = rows * _weight(neighbours).unsqueeze(-1)
        total = total.index_add(
            0, _index(neighbours, sizes).reshape((-1,)), values.reshape((prod(grid.shape[:-1]), channels))
        )
    inside = total.narrow(0, 0, batch * prod(sizes))
    return inside.reshape((batch, *sizes, channels)).movedim(-1, 1).contiguous()


@operator(
    by(lambda grad, input, grid, *_: shape_of(grid)), accepts="real floating", method=False, public=False, out=False
)
def grid_sampler_grid_gradient(
    grad: Tensor, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """The gradient of :func:`grid_sampler` with respect to ``grid``, for the gradient ``grad`` (N, C, …) of its result.

    It is 0 where the padding replaces a coordinate by a constant. Half types compute in float32.
    """
    modes = interpolation_mode, padding_mode, align_corners
    if input.dtype.is_half:
        return grid_sampler_grid_gradient(grad.float(), input.float(), grid.float(), *modes).to(grid.dtype)
    if interpolation_mode == NEAREST:
        return grid.new_zeros(tuple(grid.shape))
    sizes, rows = tuple(input.shape[2:]), _rows(input)
    g, taps = grad.movedim(1, -1), _taps(grid, sizes, *modes)
    gradients: list[Any] = [0.0] * len(sizes)
    for neighbours in product(*taps):
        products = (_read(rows, _index(neighbours, sizes)) * g).sum(-1)
        for dim, tap in enumerate(neighbours):
            others = [t.weight for t in neighbours if t is not tap]
            gradients[dim] = gradients[dim] + reduce(mul, others, products * tap.slope)
    return where(grid.isnan(), 0, stack(gradients[::-1], -1))


grid_sampler.vjp(
    input=lambda g, input_spec, grid, interpolation_mode, padding_mode, align_corners: grid_sampler_adjoint(
        g, grid, tuple(input_spec.shape[2:]), interpolation_mode, padding_mode, align_corners
    ),
    grid=lambda g, input, grid, interpolation_mode, padding_mode, align_corners: grid_sampler_grid_gradient(
        g, input, grid, interpolation_mode, padding_mode, align_corners
    ),
)
grid_sampler_adjoint.vjp(
    grad=lambda g, grid, interpolation_mode, padding_mode, align_corners: grid_sampler(
        g, grid, interpolation_mode, padding_mode, align_corners
    ),
    grid=lambda g, grad, grid, interpolation_mode, padding_mode, align_corners: grid_sampler_grid_gradient(
        grad, g, grid, interpolation_mode, padding_mode, align_corners
    ),
)


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
    return (_affine_points(theta, sizes[2:], align_corners) @ theta.transpose(1, 2)).reshape(shape)


def _affine_points(like: Tensor, spatial: Ints, align_corners: bool) -> Tensor:
    """Return the elements' positions in [-1, 1], the last dim first, and 1: (1, elements, rank + 1)."""
    columns = []
    for dim in range(len(spatial) - 1, -1, -1):
        count = spatial[dim]
        position = new_arange(like, 0, 1, count, dtype=like.dtype)
        if align_corners:
            position = position * (2 / (count - 1)) - 1 if count > 1 else position
        else:
            position = (position * 2 + (1 - count)) / count
        columns.append(position.reshape([count if i == dim else 1 for i in range(len(spatial))]).expand(spatial))
    points: Tensor = stack([*columns, like.new_ones(spatial)], -1)
    return points.reshape((1, prod(spatial), len(spatial) + 1))


def _affine_vjp(g: Tensor, theta_spec: Any, size: Shape, align_corners: bool) -> Tensor:
    """Add up the gradients of the points times the elements' positions."""
    spatial = tuple(size)[2:]  # type: ignore[arg-type]
    grads = g.reshape((theta_spec.shape[0], prod(spatial), len(spatial)))
    return grads.transpose(1, 2) @ _affine_points(g, spatial, align_corners)


affine_grid_generator.vjp(theta=_affine_vjp)


# -- neighbours -------------------------------------------------------------------------------------------------------
class Tap(NamedTuple):
    """A neighbour of each point along one dim."""

    place: Tensor
    """The integer position, which may be outside of the input."""
    weight: Any
    slope: Any
    """The derivative of the weight with respect to the coordinate in the grid."""


def _taps(grid: Tensor, sizes: Ints, mode: int, padding: int, align_corners: bool) -> list[list[Tap]]:
    """Return the neighbours along each dim."""
    coordinates = where(grid.isnan(), -1, grid).unbind(-1)
    return [
        _taps_along(c, size, mode, padding, align_corners) for c, size in zip(reversed(coordinates), sizes, strict=True)
    ]


def _taps_along(coordinate: Tensor, size: int, mode: int, padding: int, align_corners: bool) -> list[Tap]:
    """Return two neighbours for linear interpolation, one for the nearest, and four, each padded, for cubic."""
    x = ((coordinate + 1) / 2 * (size - 1)) if align_corners else (((coordinate + 1) * size - 1) / 2)
    scale = (size - 1) / 2 if align_corners else size / 2
    if mode == CUBIC:
        floor = x.detach().floor()
        places = [_padded(floor + (i - 1), size, padding, align_corners)[0] for i in range(4)]
        keys = zip(places, *_keys(x - floor), strict=True)
        return [Tap(place, weight, slope * scale) for place, weight, slope in keys]
    x, direction = _padded(x, size, padding, align_corners)
    if mode == NEAREST:
        return [Tap(x.round(), new_full(x, tuple(x.shape), 1), None)]
    floor, slope = x.detach().floor(), direction * scale
    return [Tap(floor, floor + 1 - x, -slope), Tap(floor + 1, x - floor, slope)]


def _padded(x: Tensor, size: int, padding: int, align_corners: bool) -> tuple[Tensor, Any]:
    """Return positions in elements, those outside of the input replaced by positions inside as the padding mode
    defines, and the derivative of this step: 1, 0 or -1.

    With zeros as padding, positions are only clamped to a distance at which the result is 0.
    """
    if padding == ZEROS:
        return x.clamp(-2, size + 1), 1.0
    direction: Any = 1.0
    if padding == REFLECTION:
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        if low == high:
            return new_full(x, tuple(x.shape), 0), 0.0
        span = high - low
        folded = (x - low).abs().fmod(2 * span)
        direction = where((x < low) ^ (folded > span), -1.0, 1.0)
        x = where(folded > span, 2 * span - folded, folded) + low
        x = where(x.isfinite(), x, 0)
    inside = (x > 0) & (x < size - 1)
    return x.clamp(0, size - 1), where(inside, direction, 0.0)


def _keys(t: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Return the weights of the neighbours at distance 1 + t, t, 1 - t and 2 - t, and their derivatives in t."""

    def inner(x: Tensor) -> Tensor:
        return ((A + 2) * x - (A + 3)) * x * x + 1

    def outer(x: Tensor) -> Tensor:
        return ((A * x - 5 * A) * x + 8 * A) * x - 4 * A

    def inner_slope(x: Tensor) -> Tensor:
        return (3 * (A + 2) * x - 2 * (A + 3)) * x

    def outer_slope(x: Tensor) -> Tensor:
        return (3 * A * x - 10 * A) * x + 8 * A

    slopes = [outer_slope(t + 1), inner_slope(t), -inner_slope(1 - t), -outer_slope(2 - t)]
    return [outer(t + 1), inner(t), inner(1 - t), outer(2 - t)], slopes


def _rows(input: Tensor) -> Tensor:
    """Return the channels of each element as a row, so that an index copies adjacent memory, and a last row of 0."""
    batch, channels, *sizes = input.shape
    rows = input.movedim(1, -1).reshape((batch * prod(sizes), channels))
    return cat([rows, input.new_zeros((1, channels))])


def _weight(neighbours: Sequence[Tap]) -> Any:
    return reduce(mul, [tap.weight for tap in neighbours])


def _index(neighbours: Sequence[Tap], sizes: Ints) -> Tensor:
    """Return the number of each element among those of the input, and the first number after them for others."""
    inside: Any = True
    batch = neighbours[0].place.shape[0]
    flat: Any = new_arange(neighbours[0].place, 0, 1, batch, dtype=int64)
    flat = flat.reshape((batch, *[1] * (neighbours[0].place.ndim - 1)))
    for tap, size in zip(neighbours, sizes, strict=True):
        place = tap.place.detach()
        inside = (place >= 0) & (place <= size - 1) & inside
        flat = flat * size + place.clamp(0, size - 1).to(int64)
    return where(inside, flat, batch * prod(sizes))


def _read(rows: Tensor, index: Tensor) -> Tensor:
    """Return the channels of the elements with these numbers: (N, …, C)."""
    return rows.index_select(0, index.reshape((-1,))).reshape((*index.shape, rows.shape[1]))
