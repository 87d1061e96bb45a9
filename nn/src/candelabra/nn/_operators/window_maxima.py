"""Maxima of windows that no kernel size and stride describe: adaptive and fractional max pooling.

Their bodies copy the windows side by side and call :func:`max_pool` with windows that do not overlap. Of equal values
the first is selected, and of several NaN the last.
"""

from __future__ import annotations

from math import prod

from candelabra.dtypes import int64
from candelabra.library import by, index, operator, record, same, shape_of
from candelabra.nn._operators.pooling import Pooled, max_pool, scatter_planes
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Index, Tensor

Ints = tuple[int, ...]
new_arange, cat = record("new_arange"), record("cat")


# -- windows that divide the input ------------------------------------------------------------------------------------
def _window_elements(size: int, count: int) -> tuple[int, Ints]:
    """Return the length of ``count`` windows that cover ``size`` elements, and the index of each of their elements.

    Shorter windows repeat their last element.
    """
    bounds = [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]
    length = max(end - first for first, end in bounds)
    return length, tuple([min(first + k, end - 1) for first, end in bounds for k in range(length)])


@by
def _adaptive(input: Tensor, output_size: Ints) -> Any:
    shape = shape_of(input)
    pooled = (*shape[: len(shape) - len(output_size)], *output_size)
    return pooled, pooled


@operator(_adaptive, result=(same, index), accepts="real floating", method=False, public=False)
def adaptive_max_pool(input: Tensor, output_size: Ints) -> Pooled:
    """The maxima of ``prod(output_size)`` windows that cover the last dims evenly, and their indices in these dims.

    Window i of ``count`` along a dim has the elements floor(i * size / count) to ceil((i + 1) * size / count).
    """
    rank = len(output_size)
    lead = input.ndim - rank
    sizes = tuple(input.shape[lead:])
    if not prod(output_size):
        shape = (*input.shape[:lead], *output_size)
        return Pooled(input.new_zeros(shape), input.new_zeros(shape, dtype=int64))
    input.new_empty((*input.shape[:lead], *output_size))  # for its error, before lists of that size
    windows, elements, copied = [], [], input
    for dim, (size, count) in enumerate(zip(sizes, output_size, strict=True)):
        length, indices = _window_elements(size, count)
        windows.append(length)
        elements.append(indices)
        if len(indices) != size:
            copied = copied.index_select(lead + dim, input.new_tensor(indices, dtype=int64))
    window = tuple(windows)
    found = max_pool(copied, window, window, (0,) * rank, (1,) * rank, output_size)
    return found if copied is input else Pooled(found.values, _original(found.indices, elements, sizes))


def _original(position: Tensor, elements: list[Ints], sizes: Ints) -> Tensor:
    """Return the flat indices of elements from their flat positions among the copied windows."""
    flat: Any = 0
    stride = 1
    for indices, size in zip(reversed(elements), reversed(sizes), strict=True):
        lookup = position.new_tensor([i * stride for i in indices])
        flat = lookup.take(position % len(indices)) + flat
        position = position // len(indices)
        stride *= size
    return flat


def _planes(g: Tensor, indices: Tensor, shape: Ints, rank: int) -> Tensor:
    """Return the gradient: the gradients of the maxima at their indices, added up."""
    lead = shape[: len(shape) - rank]
    flat = (*lead, prod(g.shape[len(lead) :]))
    return scatter_planes(g.reshape(flat), indices.reshape(flat), prod(shape[len(lead) :]), False).reshape(shape)


adaptive_max_pool.vjp(
    input=lambda g_values, indices, input_spec, output_size: _planes(
        g_values, indices, input_spec.shape, len(output_size)
    )
)


# -- windows at given places ------------------------------------------------------------------------------------------
@by
def _starts_shape(samples: Tensor, sizes: Ints, window: Ints, output_size: Ints) -> Ints:
    return (*shape_of(samples)[:2], sum(output_size))


@operator(_starts_shape, result=index, accepts="real floating", method=False, public=False, out=False)
def window_starts(samples: Tensor, sizes: Ints, window: Ints, output_size: Ints) -> Tensor:
    """Where windows start, for :func:`placed_max_pool`: (N, C, sum(output_size)), from numbers in [0, 1) (N, C, rank).

    The steps between the starts along a dim are rounded down from a common step, after the number is added; the last
    window ends with the input. As in PyTorch, the numbers of images are in the order width, height, and those of
    volumes in the order of the dims.
    """
    rank, starts = len(sizes), []
    for dim, (size, length, count) in enumerate(zip(sizes, window, output_size, strict=True)):
        sample = samples.narrow(2, rank - 1 - dim if rank == 2 else dim, 1)
        if count > 1:
            step = (size - length) / (count - 1)
            number = new_arange(sample, 0, 1, count - 1, dtype=sample.dtype)
            starts.append(((number + sample) * step).to(int64) - (sample * step).to(int64))
        if count:
            starts.append(sample.new_full((*sample.shape[:-1], 1), size - length, dtype=int64))
    return cat(starts, -1)


window_starts.no_gradient("the result is integers")


@by
def _placed(input: Tensor, starts: Tensor, window: Ints, output_size: Ints) -> Any:
    shape = (*shape_of(input)[:2], *output_size)
    return shape, shape


@operator(_placed, result=(same, index), accepts="real floating", method=False, public=False)
def placed_max_pool(input: Tensor, starts: Index, window: Ints, output_size: Ints) -> Pooled:
    """The maxima of windows of one size, and their indices in the last dims: (N, C, *output_size) from (N, C, …).

    ``starts`` (N, C, sum(output_size)) has the first positions of the windows of each plane along the first of these
    dims, then along the second, and so on. All windows are within the input.
    """
    rank = len(window)
    lead, sizes = tuple(input.shape[:2]), tuple(input.shape[2:])
    flat: Any = 0
    for dim, (size, k, m) in enumerate(zip(sizes, window, output_size, strict=True)):
        first = starts.narrow(2, sum(output_size[:dim]), m).unsqueeze(-1)
        along = [1] * (2 * rank)
        along[dim], along[rank + dim] = m, k
        positions = (first + new_arange(starts, 0, 1, k, dtype=int64)).reshape((*lead, *along))
        flat = flat * size + positions
    length = prod(window)
    elements = flat.reshape((*lead, prod(output_size) * length))
    values = input.reshape((*lead, prod(sizes))).gather(-1, elements)
    found = max_pool(values, (length,), (length,), (0,), (1,), (prod(output_size),))
    shape = (*lead, *output_size)
    return Pooled(found.values.reshape(shape), elements.gather(-1, found.indices).reshape(shape))


placed_max_pool.vjp(
    input=lambda g_values, indices, input_spec: _planes(g_values, indices, input_spec.shape, len(input_spec.shape) - 2)
)
