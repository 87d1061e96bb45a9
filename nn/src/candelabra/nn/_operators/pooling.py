"""Pooling over any number of spatial dims: the largest of a window, with its place, and the sum of a window."""

from __future__ import annotations

from candelabra.dtypes import int64
from candelabra.library import by, index, operator, record, same, shape_of
from candelabra.typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Dim, Index, Shape, Tensor

Ints = tuple[int, ...]


def pooled_size(size: int, window: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """How many windows there are along one dim. In ceil mode a last window may hang over, if it starts inside."""
    room = size + 2 * padding - dilation * (window - 1) - 1
    count: int = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


def pooled_shape(shape: Ints, window: Ints, stride: Ints, padding: Ints, dilation: Ints, ceil_mode: bool) -> Ints:
    """The shape of a pooled tensor: the leading dims, then the windows."""
    lead = len(shape) - len(window)
    sizes = zip(shape[lead:], window, stride, padding, dilation, strict=True)
    return (*shape[:lead], *[pooled_size(*each, ceil_mode) for each in sizes])


@by
def _pooled(input: Tensor, window: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> Any:
    shape = shape_of(input)
    return (*shape[: len(shape) - len(window)], *places)


@by
def _pooled_twice(*args: Any) -> Any:
    shape = _pooled(None, args)
    return shape, shape


class Pooled(NamedTuple):
    """The largest values, and where in the flattened spatial dims they were found."""

    values: Tensor
    indices: Tensor


@operator(_pooled_twice, result=(same, index), accepts="real numeric", method=False, public=False)
def max_pool(input: Tensor, window: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> Pooled:
    """The largest value of each window over the last ``len(window)`` dims, the first among equals; the last NaN wins.

    ``places`` is the number of windows per dim, ``padding`` counts as smaller than any number, and the indices count in
    the flattened spatial dims of the unpadded input.
    """
    ...


max_pool.vjp(
    input=lambda g_values, indices, input_spec, window, stride, dilation: _to_places(
        g_values, indices, input_spec.shape, len(window), _apart(window, stride, dilation)
    )
)


def _apart(window: Ints, stride: Ints, dilation: Ints) -> bool:
    """Whether no two windows share a place."""
    return all(s > d * (k - 1) for k, s, d in zip(window, stride, dilation, strict=True))


def _to_places(g: Tensor, indices: Tensor, shape: Ints, rank: int, distinct: bool) -> Tensor:
    """The gradient of each window at the place of its largest value; windows that share a place add up."""
    lead = shape[: len(shape) - rank]
    size = 1
    for s in shape[len(lead) :]:
        size *= s
    count = 1
    for s in g.shape[len(lead) :]:
        count *= s
    flat = scatter_planes(g.reshape((*lead, count)), indices.reshape((*lead, count)), size, distinct)
    return flat.reshape(shape)


@operator(_pooled, accepts="real numeric", method=False, public=False, out=False)
def max_pool_values(input: Tensor, window: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> Tensor:
    """As :func:`max_pool`, the values alone: what is asked for when nothing needs the places."""
    return max_pool(input, window, stride, padding, dilation, places).values


@operator(by(lambda input, index, size, distinct: (*shape_of(input)[:-1], size)), method=False, public=False, out=False)
def scatter_planes(input: Tensor, index: Index, size: int, distinct: bool) -> Tensor:
    """Zeros with ``input[..., i]`` added at ``[..., index[..., i]]``: shape (*input.shape[:-1], size).

    The indices are those of a pool, and so within bounds.

    ``distinct`` promises that no index stands twice in a plane, so that nothing has to be added up.
    """
    new_full, scatter_add = record("new_full"), record("scatter_add")

    zeros = new_full(input, (*input.shape[:-1], size), 0)
    return scatter_add(zeros, input.ndim - 1, index, input)


scatter_planes.vjp(input=lambda g, index: g.gather(g.ndim - 1, index))


@operator(_pooled, accepts="numeric", method=False, public=False, out=False)
def sum_pool(input: Tensor, window: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> Tensor:
    """The sum of each window over the last ``len(window)`` dims; what lies outside the input counts as 0."""
    ...


@by
def _spread(output: Tensor, shape: Ints, window: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    return shape


@operator(_spread, accepts="numeric", method=False, public=False, out=False)
def sum_pool_adjoint(output: Tensor, shape: Shape, window: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    """The adjoint of :func:`sum_pool`: every window's value added to each place of the window, in ``shape``."""
    ...


sum_pool.vjp(
    input=lambda g, input_spec, window, stride, padding, dilation: sum_pool_adjoint(
        g, input_spec.shape, window, stride, padding, dilation
    )
)
sum_pool_adjoint.vjp(
    output=lambda g, output_spec, window, stride, padding, dilation: sum_pool(
        g, window, stride, padding, dilation, tuple(output_spec.shape[len(output_spec.shape) - len(window) :])
    )
)


def averaging(size: int, parts: int, like: Tensor) -> Tensor:
    """The matrix whose column i averages elements floor(i * size / parts) to ceil((i + 1) * size / parts)."""
    new_arange, cast = record("new_arange"), record("cast")
    part = new_arange(like, 0, 1, parts, dtype=int64)
    start = (part * size) // max(parts, 1)
    stop = -((-(part + 1) * size) // max(parts, 1))
    place = new_arange(like, 0, 1, size, dtype=int64).unsqueeze(1)
    inside = (place >= start) & (place < stop)
    weights: Tensor = cast(inside, dtype=like.dtype) / cast(stop - start, dtype=like.dtype)
    return weights


def along(input: Tensor, dim: Dim, matrix: Tensor) -> Tensor:
    """``input`` with its vectors along ``dim`` multiplied by ``matrix``."""
    return (input.movedim(dim, -1) @ matrix).movedim(-1, dim)
