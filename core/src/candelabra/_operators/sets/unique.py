"""Distinct elements or slices: ``unique`` and ``unique_consecutive``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._layout import wrap_dim
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.indexing.advanced import index_put
from candelabra._operators.indexing.index_operators import index_select
from candelabra._operators.shapes.joining import cat
from candelabra._operators.sorting.sort import argsort, ordered, sort
from candelabra._records.callables import public
from candelabra.dtypes import bool_, int64

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


@public
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Return the distinct elements in ascending order, or with ``dim`` the distinct slices; two NaNs are distinct.

    With ``return_inverse`` also the index of each element among the distinct ones, with ``return_counts`` also the
    number of times that each occurs. ``sorted=False`` is accepted; the result is sorted nevertheless.
    """
    input = input.detach()
    if dim is not None:
        d = _dim_of_slices(input, dim, "unique")
        order = _lexical_order(input, d)
        return _distinct(index_select(input, d, order), order, d, return_inverse, return_counts, None)
    flat = input.flatten()
    if not return_inverse:
        return _distinct(ordered(flat, 0), None, 0, return_inverse, return_counts, input)
    values, order = sort(flat, 0)
    return _distinct(values, order, 0, return_inverse, return_counts, input)


@public
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Return :func:`unique` without sorting: one element or slice of each run of equal ones."""
    input = input.detach()
    if dim is not None:
        d = _dim_of_slices(input, dim, "unique_consecutive")
        return _distinct(input, None, d, return_inverse, return_counts, None)
    return _distinct(input.flatten(), None, 0, return_inverse, return_counts, input)


def _dim_of_slices(input: Tensor, dim: int, name: str) -> int:
    """Return the canonical dim. Raise ``RuntimeError`` if there are no slices along it, or slices without elements."""
    d = wrap_dim(dim, input.ndim)
    if not input.ndim:
        raise RuntimeError(f"{name}(): a 0-d tensor has no slices along dim {dim}: leave dim out")
    if not input.numel() and (input.shape[d] or any(not s for i, s in enumerate(input.shape) if i != d)):
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return d


def _slices_as_rows(x: Tensor, dim: int) -> Tensor:
    """Return the slices along ``dim`` as rows of a matrix."""
    count = x.shape[dim]
    return x.movedim(dim, 0).reshape(count, x.numel() // count if count else 0)


def _lexical_order(x: Tensor, dim: int) -> Tensor:
    """Return the indices that sort the slices along ``dim`` lexically: stable sorts by each element, the last one
    first.
    """
    rows = _slices_as_rows(x, dim)
    order = new_arange(x, 0, 1, x.shape[dim], dtype=int64)
    for column in range(rows.shape[1] - 1, -1, -1):
        keys = index_select(rows.select(1, column), 0, order)
        order = index_select(order, 0, argsort(keys, 0))
    return order


def _distinct(
    x: Tensor, order: Tensor | None, dim: int, return_inverse: bool, return_counts: bool, original: Tensor | None
) -> Tensor | tuple[Tensor, ...]:
    """Return the results of :func:`unique` for slices along ``dim``, of which equal ones are adjacent.

    ``order`` has the index of each slice in the original tensor, whose shape the inverse gets; by default there was no
    other order.
    """
    count = x.shape[dim]
    rows = x if x.ndim == 1 else _slices_as_rows(x, dim)
    is_first = new_full(x, (count,), True, dtype=bool_)
    if count > 1:
        differs = rows[1:] != rows[:-1]
        is_first = cat([is_first[:1], differs if x.ndim == 1 else differs.any(1)], 0)
    starts = is_first.nonzero().flatten()
    results = [index_select(x, dim, starts)]
    if return_inverse:
        inverse = is_first.cumsum(0) - 1
        if order is not None:
            inverse = index_put(inverse, (order,), inverse)
        results.append(inverse if original is None else inverse.reshape(original.shape))
    if return_counts:
        end = new_full(starts, (min(1, count),), count)
        results.append(cat([starts[1:], end], 0) - starts)
    return results[0] if len(results) == 1 else tuple(results)
