"""Maxima of windows that no kernel size and stride describe: adaptive and fractional max pooling.

Both copy the windows side by side and call :func:`max_pool` with windows that do not overlap. Of equal values the first
is selected, and of several NaN the last.
"""

from __future__ import annotations

from math import prod

from candelabra.dtypes import int64
from candelabra.library import by, index, operator, same, shape_of
from candelabra.nn._operators.pooling import Pooled, max_pool, scatter_planes
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Index, Tensor

Ints = tuple[int, ...]


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


# -- windows of listed elements ---------------------------------------------------------------------------------------
@by
def _listed(input: Tensor, elements: Tensor) -> Any:
    shape = shape_of(elements)[:-1]
    return shape, shape


@operator(_listed, result=(same, index), accepts="real floating", method=False, public=False)
def listed_max_pool(input: Tensor, elements: Index) -> Pooled:
    """The maxima of windows of listed elements: (…, m) from (…, n) and the indices (…, m, k) along the last dim.

    The second result are the indices of the maxima. The indices are within bounds, and k is at least 1.
    """
    length = elements.shape[-1]
    flat = elements.reshape((*elements.shape[:-2], elements.shape[-2] * length))
    window = (length,)
    found = max_pool(input.gather(-1, flat), window, window, (0,), (1,), (elements.shape[-2],))
    return Pooled(found.values, flat.gather(-1, found.indices))


listed_max_pool.vjp(
    input=lambda g_values, indices, input_spec: scatter_planes(g_values, indices, input_spec.shape[-1], False)
)
