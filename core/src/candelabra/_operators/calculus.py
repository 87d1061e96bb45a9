"""Differences, derivatives and integrals of samples along a dim."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_distinct_dims
from candelabra._layout import broadcast_shapes
from candelabra._operators.shapes.joining import cat
from candelabra._records.callables import public
from candelabra._records.promotion import to_float, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import BOOL

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.typing import Dim, Number, Tensor

Shape = tuple[int, ...]


# -- differences ------------------------------------------------------------------------------------------------------
@by
def _diff_shape(input: Tensor, n: int, dim: int, prepend: Tensor | None, append: Tensor | None) -> Shape:
    shape = shape_of(input)
    if not shape:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if not hasattr(n, "__index__"):
        raise TypeError(f"diff(): argument 'n' must be int, not {type(n).__name__}")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    size = shape[dim]
    for joined in (prepend, append):
        if joined is None:
            continue
        other = shape_of(joined)
        if len(other) != len(shape):
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for i, (have, want) in enumerate(zip(other, shape, strict=True)):
            if i != dim and have != want:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along the "
                    f"differencing dimension; input.size({i}) = {want}, but got tensor.size({i}) = {have}"
                )
        size += other[dim]
    return (*shape[:dim], max(size - n, 0), *shape[dim + 1 :]) if n else shape


@operator(_diff_shape)
def diff(
    input: Tensor, n: int = 1, dim: Dim = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return the differences between adjacent elements along ``dim``, taken ``n`` times: ``out[i] = input[i + 1] -
    input[i]``.

    ``prepend`` and ``append`` are concatenated with the input first. For bools, the difference is the logical XOR.
    Raises ``RuntimeError`` for a 0-d input and a negative ``n``.
    """
    _diff_shape(diff, (input, n, dim, prepend, append))
    if n == 0:
        return input.clone()
    joined = tuple(t for t in (prepend, input, append) if t is not None)
    x: Tensor = cat(joined, dim) if len(joined) > 1 else input
    for _ in range(min(n, x.shape[dim])):
        size = x.shape[dim] - 1
        upper, lower = x.narrow(dim, 1, size), x.narrow(dim, 0, size)
        x = upper.logical_xor(lower) if x.dtype.category == BOOL else upper - lower
    return x


# -- derivatives ------------------------------------------------------------------------------------------------------
@public(method=False)
def gradient(
    input: Tensor,
    *,
    spacing: Number | Tensor | Sequence[Number] | Sequence[Tensor] = 1,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """Return the derivatives along each of ``dim``, computed by central differences of samples at a distance of
    ``spacing``.

    ``spacing`` is a number, a list of them, one per dim, or a list of 1-d tensors of coordinates. At both ends the
    difference is one-sided, of order ``edge_order``, 1 or 2. The result is a tuple with one tensor per dim. Raises
    ``RuntimeError`` for dims of ``edge_order`` samples or fewer.
    """
    shape = shape_of(input)
    dims = tuple(range(len(shape))) if dim is None else as_distinct_dims(dim, input)
    steps = _spacings(spacing, dims, dim)
    if edge_order not in (1, 2):
        raise RuntimeError("candelabra.gradient only supports edge_order=1 and edge_order=2.")
    if input.dtype.name == "uint8":
        raise RuntimeError("candelabra.gradient does not support uint8 input.")
    for d, step in zip(dims, steps, strict=True):
        if shape[d] < edge_order + 1:
            raise RuntimeError("candelabra.gradient expected each dimension size to be at least edge_order+1")
        if hasattr(step, "_payload") and shape_of(step) != (shape[d],):
            raise RuntimeError(
                "candelabra.gradient expected each element of `spacing` to have one coordinate per sample: expected "
                f"{[shape[d]]} for dim {d}, got {list(shape_of(step))}"
            )
    return tuple([
        (_derivative_at if hasattr(step, "_payload") else _derivative)(input, step, d, edge_order)
        for d, step in zip(dims, steps, strict=True)
    ])  # fmt: skip


def _spacings(spacing: Any, dims: Shape, dim: Any) -> list[Any]:
    """Return the spacing along each dim."""
    if not isinstance(spacing, (list, tuple)):
        return [1 if spacing is None else spacing] * len(dims)
    if len(spacing) != len(dims) and not (len(spacing) == 1 and isinstance(dim, int)):
        raise RuntimeError(
            "candelabra.gradient expected spacing to be unspecified, a scalar or a list of length equal to the "
            f"number of dimensions, {len(dims)}, but got a list of length {len(spacing)}"
        )
    return list(spacing)


def _along(x: Tensor, d: int) -> Callable[..., Tensor]:
    """Return a function ``at(start, count)`` that selects ``count`` samples along dim ``d``."""
    return lambda start, count=1: x.narrow(d, start, count)


def _derivative(x: Tensor, step: Any, d: int, edge_order: int) -> Tensor:
    """Return the derivative of samples at a distance of ``step``."""
    n, at = x.shape[d], _along(x, d)
    first, last = at(1) - at(0), at(n - 1) - at(n - 2)
    if edge_order == 2:
        first = at(0) * -1.5 + at(1) * 2 - at(2) * 0.5
        last = at(n - 3) * 0.5 - at(n - 2) * 2 + at(n - 1) * 1.5
    if n == 2:
        return cat((first / step, last / step), d)
    return cat((first / step, (at(2, n - 2) - at(0, n - 2)) / (step * 2), last / step), d)


def _derivative_at(x: Tensor, coordinates: Tensor, d: int, edge_order: int) -> Tensor:
    """Return the derivative of samples at ``coordinates``. Source: the second-order formula of ``numpy.gradient``'s
    notes.
    """
    n, at = x.shape[d], _along(x, d)
    gap = _along(diff(coordinates).reshape([-1 if i == d else 1 for i in range(x.ndim)]), d)
    first, last = (at(1) - at(0)) / gap(0), (at(n - 1) - at(n - 2)) / gap(n - 2)
    if n == 2:
        return cat((first, last), d)
    before, after = gap(0, n - 2), gap(1, n - 2)
    middle = at(0, n - 2) * (-after / (before * (before + after)))
    middle = middle + at(1, n - 2) * ((after - before) / (before * after))
    middle = middle + at(2, n - 2) * (before / (after * (before + after)))
    if edge_order == 2:
        a, b = gap(0), gap(1)
        first = at(0) * (-(a * 2 + b) / (a * (a + b))) + at(1) * ((a + b) / (a * b)) - at(2) * (a / (b * (a + b)))
        a, b = gap(n - 3), gap(n - 2)
        last = at(n - 3) * (b / (a * (a + b))) - at(n - 2) * ((a + b) / (a * b))
        last = last + at(n - 1) * ((b * 2 + a) / (b * (a + b)))
    return cat((first, middle, last), d)


# -- integrals --------------------------------------------------------------------------------------------------------
def _one_fewer(shape: Shape, dim: int) -> Shape:
    return (*shape[:dim], max(shape[dim] - 1, 0), *shape[dim + 1 :])


def _cumulative_shape(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
    """Return one sample fewer along ``dim``; ``x`` is a vector of that dim's size, or broadcasts with ``y``."""
    y, x, dx, dim = args
    shape = shape_of(y)
    if not shape:
        raise RuntimeError(f"{op.name}: expected `y` to be at least one-dimensional")
    for t in (y, x):
        if t is not None and t.dtype.category == BOOL:
            raise RuntimeError(f"{op.name}: received a bool input for `x` or `y`, but bool is not supported")
    if x is None:
        return _one_fewer(shape, dim)
    if dx is not None:
        raise TypeError(f"{op.name}() takes either `x` or `dx`, got both")
    points = shape_of(x)
    if len(points) == 1:
        if points[0] != shape[dim]:
            raise RuntimeError(f"{op.name}: There must be one `x` value for each sample point")
        return _one_fewer(shape, dim)
    rank = max(len(points), len(shape))
    points, shape = (1,) * (rank - len(points)) + points, (1,) * (rank - len(shape)) + shape
    dim += rank - y.ndim
    return broadcast_shapes(_one_fewer(points, dim), _one_fewer(shape, dim))


def _integral_shape(op: Operator[..., Any], args: tuple[Any, ...]) -> Shape:
    shape = _cumulative_shape(op, args)
    dim = args[3] - args[0].ndim + len(shape)
    return shape[:dim] + shape[dim + 1 :]


def _neighbours(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return all elements along a dim except the first, and all except the last."""
    size = x.shape[dim]
    count = max(size - 1, 0)
    return x.narrow(dim, size - count, count), x.narrow(dim, 0, count)


def _twice_areas(y: Tensor, x: Tensor | None, dx: Number | None, dim: int) -> tuple[Tensor, int]:
    """Return twice the area between adjacent samples along ``dim``, and the index of that dim in the result."""
    if x is not None and x.ndim == 1:
        x = x.reshape([-1 if i == dim else 1 for i in range(y.ndim)])
    if x is not None and x.ndim != y.ndim:
        rank = max(x.ndim, y.ndim)
        dim += rank - y.ndim
        x, y = (t.reshape([1] * (rank - t.ndim) + list(t.shape)) for t in (x, y))
    upper, lower = _neighbours(y, dim)
    heights = upper + lower
    if x is None:
        return heights if dx is None else heights * dx, dim
    upper, lower = _neighbours(x, dim)
    return heights * (upper - lower), dim


@operator(_integral_shape, promote=unpromoted, result=to_float, method=False, out=False, aliases=("trapz",))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: Dim = -1) -> Tensor:
    """Return the integral of samples ``y`` along ``dim`` by the trapezoidal rule.

    The samples are at the points ``x``, or at a distance of ``dx``, 1 by default. ``x`` is a vector as long as ``y``
    along ``dim``, or broadcasts with ``y``. Raises ``RuntimeError`` for bools.
    """
    _integral_shape(trapezoid, (y, x, dx, dim))
    size = y.shape[dim]
    if x is None and size > 1 and y.is_floating_point():  # one pass: all samples but the first and the last count twice
        total = y.narrow(dim, 1, size - 2).sum(dim) + (y.select(dim, 0) + y.select(dim, -1)) / 2
        return total if dx is None else total * dx
    areas, dim = _twice_areas(y, x, dx, dim)
    return areas.sum(dim) / 2


@operator(_cumulative_shape, promote=unpromoted, result=to_float, method=False, out=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Number | None = None, dim: Dim = -1) -> Tensor:
    """Return the cumulative integral of samples ``y`` along ``dim`` by the trapezoidal rule, one element shorter than
    ``y``.

    See :func:`trapezoid` for the arguments.
    """
    _cumulative_shape(cumulative_trapezoid, (y, x, dx, dim))
    areas, dim = _twice_areas(y, x, dx, dim)
    return areas.cumsum(dim) / 2
