"""Differences, gradients and integrals of samples along a dim."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import wrap_dim
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.primitives.creation import full
from candelabra._operators.shapes.joining import cat
from candelabra._records.callables import public
from candelabra._records.rules import shape_of
from candelabra.dtypes import BOOL

if TYPE_CHECKING:
    from candelabra._tensor import Tensor

Ints = tuple[int, ...]


# -- differences ------------------------------------------------------------------------------------------------------
@public(out=True)
@takes_tensors("diff")
def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """The differences of neighbours along ``dim``, taken ``n`` times: ``out[i] = input[i + 1] - input[i]``.

    ``prepend`` and ``append`` are joined to the input first. Of bools, whether neighbours differ. ``RuntimeError`` for
    0-d input and negative ``n``.
    """
    shape = shape_of(input)
    if not shape:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if not hasattr(n, "__index__"):
        raise TypeError(f"diff(): argument 'n' must be int, not {type(n).__name__}")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    dim = wrap_dim(dim, len(shape))
    parts = [t for t in (prepend, input, append) if t is not None]
    for part in parts:
        _check_joins(shape_of(part), shape, dim)
    if n == 0:
        return input.clone()
    x = cat(tuple(parts), dim) if len(parts) > 1 else input
    for _ in range(min(n, shape_of(x)[dim])):
        size = shape_of(x)[dim] - 1
        upper, lower = x.narrow(dim, 1, size), x.narrow(dim, 0, size)
        x = upper.logical_xor(lower) if x.dtype.category == BOOL else upper - lower
    return x


def _check_joins(part: Ints, shape: Ints, dim: int) -> None:
    if len(part) != len(shape):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for i, (have, want) in enumerate(zip(part, shape)):
        if i != dim and have != want:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except along the "
                f"differencing dimension; input.size({i}) = {want}, but got tensor.size({i}) = {have}"
            )


# -- gradients --------------------------------------------------------------------------------------------------------
@public(method=False)
@takes_tensors("gradient")
def gradient(input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The derivative along each of ``dim``, by central differences, of samples ``spacing`` apart: a tuple of tensors.

    ``spacing`` is a number, a list of them, one per dim, or a list of 1-d tensors of coordinates. At both ends the
    difference is one-sided, of order ``edge_order``, 1 or 2. ``RuntimeError`` for dims of edge_order samples or fewer.
    """
    shape = shape_of(input)
    dims = _gradient_dims(dim, len(shape))
    steps = _spacings(spacing, dims, dim)
    if edge_order not in (1, 2):
        raise RuntimeError("candelabra.gradient only supports edge_order=1 and edge_order=2.")
    if input.dtype.name == "uint8":
        raise RuntimeError("candelabra.gradient does not support uint8 input.")
    for d in dims:
        if shape[d] < edge_order + 1:
            raise RuntimeError("candelabra.gradient expected each dimension size to be at least edge_order+1")
    for d, step in zip(dims, steps):
        if hasattr(step, "_payload") and shape_of(step) != (shape[d],):
            raise RuntimeError(
                "candelabra.gradient expected each element of `spacing` to have one coordinate per sample: expected "
                f"{[shape[d]]} for dim {d}, got {list(shape_of(step))}"
            )
    return tuple(_slopes(input, step, d, edge_order) for d, step in zip(dims, steps))


def _gradient_dims(dim: Any, rank: int) -> Ints:
    if dim is None:
        return tuple(range(rank))
    dims = tuple(wrap_dim(d, rank) for d in ([dim] if isinstance(dim, int) else dim))
    for i, d in enumerate(dims):
        if d in dims[:i]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return dims


def _spacings(spacing: Any, dims: Ints, dim: Any) -> list[Any]:
    if not isinstance(spacing, (list, tuple)):
        return [1 if spacing is None else spacing] * len(dims)
    if len(spacing) == 1 and isinstance(dim, int):
        return list(spacing)
    if len(spacing) != len(dims):
        raise RuntimeError(
            "candelabra.gradient expected spacing to be unspecified, a scalar or a list of length equal to the "
            f"number of dimensions, {len(dims)}, but got a list of length {len(spacing)}"
        )
    return list(spacing)


def _slopes(x: Tensor, step: Any, d: int, edge_order: int) -> Tensor:
    n = shape_of(x)[d]

    def part(start: int, stop: int) -> Tensor:
        found: Tensor = x.narrow(d, start, stop - start)
        return found

    if hasattr(step, "_payload"):
        return _uneven(x, step, d, edge_order)
    first, last = (part(1, 2) - part(0, 1)) / step, (part(n - 1, n) - part(n - 2, n - 1)) / step
    if edge_order == 2:
        first = (part(0, 1) * -1.5 + part(1, 2) * 2 - part(2, 3) * 0.5) / step
        last = (part(n - 3, n - 2) * 0.5 - part(n - 2, n - 1) * 2 + part(n - 1, n) * 1.5) / step
    if n == 2:
        return cat((first, last), d)
    return cat((first, (part(2, n) - part(0, n - 2)) / (step * 2), last), d)


def _uneven(x: Tensor, at: Tensor, d: int, edge_order: int) -> Tensor:
    """Of samples at the coordinates ``at``. Source: the second-order formula of ``numpy.gradient``'s notes."""
    n = shape_of(x)[d]
    shape = [-1 if i == d else 1 for i in range(len(shape_of(x)))]
    gaps = diff(at)

    def part(start: int, count: int = 1) -> Tensor:
        found: Tensor = x.narrow(d, start, count)
        return found

    def gap(start: int, count: int = 1) -> Tensor:
        found: Tensor = gaps.narrow(0, start, count).reshape(shape)
        return found

    first = (part(1) - part(0)) / gap(0)
    last = (part(n - 1) - part(n - 2)) / gap(n - 2)
    if n == 2:
        return cat((first, last), d)
    before, after = gap(0, n - 2), gap(1, n - 2)
    middle = part(0, n - 2) * (-after / (before * (before + after)))
    middle = middle + part(1, n - 2) * ((after - before) / (before * after))
    middle = middle + part(2, n - 2) * (before / (after * (before + after)))
    if edge_order == 2:
        a, b = gap(0), gap(1)
        first = part(0) * (-(a * 2 + b) / (a * (a + b))) + part(1) * ((a + b) / (a * b)) - part(2) * (a / (b * (a + b)))
        a, b = gap(n - 3), gap(n - 2)
        last = part(n - 3) * (b / (a * (a + b))) - part(n - 2) * ((a + b) / (a * b))
        last = last + part(n - 1) * ((b * 2 + a) / (b * (a + b)))
    return cat((first, middle, last), d)


# -- integrals --------------------------------------------------------------------------------------------------------
def _pieces(name: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> tuple[Tensor, int]:
    """The area between each two neighbours along ``dim``, twice."""
    shape = shape_of(y)
    dim = wrap_dim(dim, len(shape))
    size = shape[dim]
    for t in (y, x):
        if t is not None and t.dtype.category == BOOL:
            raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
    heights = y.narrow(dim, 1, size - 1) + y.narrow(dim, 0, size - 1)
    if x is None:
        return heights * (1 if dx is None else dx), dim
    if dx is not None:
        raise TypeError(f"{name}() takes either `x` or `dx`, got both")
    if len(shape_of(x)) == 1:
        if shape_of(x)[0] != size:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        x = x.reshape([-1 if i == dim else 1 for i in range(len(shape))])
    elif len(shape_of(x)) < len(shape):
        x = x.reshape([1] * (len(shape) - len(shape_of(x))) + list(shape_of(x)))
    along = dim - len(shape) + len(shape_of(x))
    count = shape_of(x)[along]
    gaps = x.narrow(along, 1, count - 1) - x.narrow(along, 0, count - 1)
    return heights * gaps, dim


def _empty_integral(y: Tensor, dim: int) -> Tensor | None:
    shape = shape_of(y)
    dim = wrap_dim(dim, len(shape))
    if not shape or shape[dim]:
        return None
    kept = tuple(s for i, s in enumerate(shape) if i != dim)
    made: Tensor = full(kept, 0, dtype=y.dtype, device=y.device)
    return made


@public(method=False)
@takes_tensors("trapezoid")
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral of samples ``y`` along ``dim`` by the trapezoidal rule, at the points ``x``, or ``dx`` apart (1).

    ``x`` has one dim, as long as ``y`` along ``dim``, or broadcasts with ``y``. ``RuntimeError`` for bools.
    """
    empty = _empty_integral(y, dim)
    if empty is not None:
        return empty
    d = wrap_dim(dim, len(shape_of(y)))
    if x is None and y.dtype.category != BOOL:
        ends = y.select(d, 0) + y.select(d, -1)
        return (y.sum(d) - ends / 2) * (1 if dx is None else dx)
    twice, d = _pieces("trapezoid", y, x, dx, dim)
    return twice.sum(d) / 2


@public(method=False)
@takes_tensors("trapz")
def trapz(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """:func:`trapezoid` under its older name."""
    return trapezoid(y, x, dx=dx, dim=dim)


@public(method=False)
@takes_tensors("cumulative_trapezoid")
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The running integral of samples ``y`` along ``dim`` by the trapezoidal rule: one point fewer than ``y`` has.

    See :func:`trapezoid`.
    """
    twice, d = _pieces("cumulative_trapezoid", y, x, dx, dim)
    return twice.cumsum(d) / 2
