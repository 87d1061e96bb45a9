"""Pooling over any number of spatial dims: the maximum of each window with its index, and the sum of each window."""

from __future__ import annotations

from candelabra.library import batching, by, index, operator, record, same, shape_of
from candelabra.typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from candelabra.typing import Index, Shape, Tensor

Ints = tuple[int, ...]


def pooled_size(size: int, window: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Return the number of windows along one dim. In ceil mode the last window may exceed the input it starts in."""
    room = size + 2 * padding - dilation * (window - 1) - 1
    count: int = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (count - 1) * stride >= size + padding:
        count -= 1
    return count


@by
def _pooled(input: Tensor, window: Ints, stride: Ints, padding: Ints, dilation: Ints, output_size: Ints) -> Any:
    shape = shape_of(input)
    return (*shape[: len(shape) - len(window)], *output_size)


@by
def _values_and_indices(*args: Any) -> Any:
    shape = _pooled(None, args)
    return shape, shape


class Pooled(NamedTuple):
    """The maxima, and their indices in the flattened spatial dims."""

    values: Tensor
    indices: Tensor


@operator(_values_and_indices, result=(same, index), accepts="real numeric", method=False, public=False)
def max_pool(input: Tensor, window: Ints, stride: Ints, padding: Ints, dilation: Ints, output_size: Ints) -> Pooled:
    """The maximum of each window over the last ``len(window)`` dims: the first of equal values, or the last NaN.

    ``output_size`` is the number of windows per dim. Padding is less than any number. Indices are those of the
    flattened spatial dims of the input without padding.
    """
    ...


max_pool.vjp(
    input=lambda g_values, indices, input_spec, window, stride, dilation: _scatter_to_maxima(
        g_values, indices, input_spec.shape, len(window), _disjoint(window, stride, dilation)
    )
)


def _at_maxima(t_input: Tensor, indices: Tensor, window: Ints) -> tuple[Tensor, None]:
    """Return the tangent of each window's maximum."""
    dim = indices.ndim - len(window)
    return t_input.flatten(dim).gather(dim, indices.flatten(dim)).reshape(indices.shape), None


max_pool.jvp(_at_maxima)


def _disjoint(window: Ints, stride: Ints, dilation: Ints) -> bool:
    """Return whether no two windows share an element."""
    return all(s > d * (k - 1) for k, s, d in zip(window, stride, dilation, strict=True))


def _scatter_to_maxima(g: Tensor, indices: Tensor, shape: Ints, rank: int, distinct: bool) -> Tensor:
    """Return the gradient of each window at the index of its maximum. Gradients with the same index add up."""
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
def max_pool_values(
    input: Tensor, window: Ints, stride: Ints, padding: Ints, dilation: Ints, output_size: Ints
) -> Tensor:
    """As :func:`max_pool`, but the values alone, for calls without a gradient."""
    return max_pool(input, window, stride, padding, dilation, output_size).values


@operator(by(lambda input, index, size, distinct: (*shape_of(input)[:-1], size)), method=False, public=False, out=False)
def scatter_planes(input: Tensor, index: Index, size: int, distinct: bool) -> Tensor:
    """Zeros with ``input[..., i]`` added at ``[..., index[..., i]]``: shape (*input.shape[:-1], size).

    The indices are those of :func:`max_pool`, so they are within bounds. ``distinct`` promises that no index occurs
    twice in a plane.
    """
    new_full, scatter_add = record("new_full"), record("scatter_add")

    zeros = new_full(input, (*input.shape[:-1], size), 0)
    return scatter_add(zeros, input.ndim - 1, index, input)


scatter_planes.vjp(input=lambda g, index: g.gather(g.ndim - 1, index))


@operator(by(lambda input, index, size: (*shape_of(input)[:-1], size)), method=False, public=False, out=False)
def put_planes(input: Tensor, index: Index, size: int) -> Tensor:
    """Zeros with ``input[..., i]`` assigned at ``[..., index[..., i]]``: shape (*input.shape[:-1], size).

    Of several values with one index the last one stays. Raises ``RuntimeError`` for indices out of bounds.
    """
    zeros = input.new_zeros((*input.shape[:-1], size))
    return zeros.scatter(input.ndim - 1, index, input)


put_planes.vjp(input=lambda g, index: g.gather(g.ndim - 1, index))


@operator(_pooled, accepts="numeric", method=False, public=False, out=False)
def sum_pool(input: Tensor, window: Ints, stride: Ints, padding: Ints, dilation: Ints, output_size: Ints) -> Tensor:
    """The sum of each window over the last ``len(window)`` dims; elements outside of the input count as 0."""
    ...


@by
def _adjoint_shape(output: Tensor, shape: Ints, window: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    return shape


@operator(_adjoint_shape, accepts="numeric", method=False, public=False, out=False)
def sum_pool_adjoint(output: Tensor, shape: Shape, window: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Tensor:
    """The adjoint of :func:`sum_pool`, of the given shape: adds the value of each window to all of its elements."""
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

# All dims before those of the window are treated as one.
for _record in (max_pool, max_pool_values, scatter_planes, put_planes, sum_pool, sum_pool_adjoint):
    _record.batched(batching.in_front(_record))
