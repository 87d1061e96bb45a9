"""The largest, the k-th, the middle: read off a sorted tensor. NaN counts as the largest everywhere."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra.dtypes import bool_, int64
from candelabra.fronts.registry import front
from candelabra.operator.arguments import wrap_dim
from candelabra.ops import arithmetic, creation, sorting

if TYPE_CHECKING:
    from candelabra.tensor import Tensor


@front
def msort(input: Tensor) -> Tensor:
    """The values in ascending order along the first dim."""
    values: Tensor = sorting.sort(input, 0).values
    return values


@front
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> sorting.Sorted:
    """The ``k`` largest (or smallest) elements along ``dim`` and their indices, always in order.

    Raises ``RuntimeError`` where the dim has fewer than ``k`` elements.
    """
    if input._keys & bool_.bit:
        raise RuntimeError("topk does not support bool dtypes")
    d = wrap_dim(dim, input.ndim)
    if not 0 <= k <= (input.shape[d] if input.ndim else 1):
        raise RuntimeError("selected index k out of range")
    found = sorting.sort(input, d, largest)
    if not input.ndim:
        return sorting.Sorted(*found)
    return sorting.Sorted(found.values.narrow(d, 0, k).clone(), found.indices.narrow(d, 0, k).clone())


@front
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> sorting.Sorted:
    """The ``k``-th smallest element along ``dim`` (counted from 1) and its index."""
    d = wrap_dim(dim, input.ndim)
    size = input.shape[d] if input.ndim else 1
    if not 1 <= k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d}")
    order = sorting.argsort(input, d)
    return sorting.chosen(input, d, order.narrow(d, k - 1, 1) if input.ndim else order, keepdim)


@front
def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element, of two the lower; with ``dim`` a pair (values, indices). NaN where there is one.

    Raises ``IndexError`` where ``dim`` has no elements.
    """
    return _middle(input, dim, keepdim, "median")


@front
def nanmedian(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """As :func:`median` of the elements that are not NaN; NaN where all are."""
    return _middle(input, dim, keepdim, "nanmedian")


def _middle(input: Tensor, dim: int | None, keepdim: bool, name: str) -> Any:
    if dim is None:
        flat = input.reshape(-1 if input.numel() else 0)
        if not flat.numel():
            return creation.full((), float("nan"), dtype=input.dtype, device=input._instance)
        return _middle(flat, 0, False, name).values
    d = wrap_dim(dim, input.ndim)
    size = input.shape[d] if input.ndim else 1
    if not size:
        raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    ordered = sorting.sort(input.detach(), d)
    place = creation.full(_kept(input, d), (size - 1) // 2, dtype=int64, device=input._instance)
    if input.is_floating_point():
        missing = ordered.values.isnan().sum(d, True)
        if name == "median":  # the first NaN, where there is one
            place = arithmetic.where.function(missing > 0, size - missing, place)
        else:
            place = ((size - missing - 1).clamp(min=0)).div(2, rounding_mode="floor")
    return sorting.chosen(input, d, ordered.indices.gather(d, place), keepdim)


def _kept(input: Tensor, dim: int) -> tuple[int, ...]:
    return tuple(1 if d == dim else size for d, size in enumerate(input.shape))


@front
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements in ascending order, or with ``dim`` the distinct slices; every NaN is distinct.

    With ``return_inverse`` also where each element went, with ``return_counts`` also how often each occurs.
    """
    input = input.detach()
    flat = input.reshape(-1 if input.numel() else 0) if dim is None else input
    d = 0 if dim is None else wrap_dim(dim, input.ndim)
    order = _lexical(flat, d)
    return _distinct(
        flat.index_select(d, order), order, d, return_inverse, return_counts, input if dim is None else None
    )


@front
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """As :func:`unique`, dropping only elements (or slices) equal to the one before."""
    input = input.detach()
    flat = input.reshape(-1 if input.numel() else 0) if dim is None else input
    d = 0 if dim is None else wrap_dim(dim, input.ndim)
    order = creation.arange(0, 1, flat.shape[d], dtype=int64, device=input._instance)
    return _distinct(flat, order, d, return_inverse, return_counts, input if dim is None else None)


def _rows(x: Tensor, dim: int) -> Tensor:
    """The slices along ``dim`` as rows of a matrix."""
    count = x.shape[dim]
    return x.movedim(dim, 0).reshape(count, x.numel() // count if count else 0)


def _lexical(x: Tensor, dim: int) -> Tensor:
    """The order of the slices along ``dim``, compared element by element: stable sorts, the last element first."""
    rows = _rows(x, dim)
    order = creation.arange(0, 1, x.shape[dim], dtype=int64, device=x._instance)
    for column in range(rows.shape[1] - 1, -1, -1):
        keys = rows.select(1, column).index_select(0, order)
        order = order.index_select(0, sorting.argsort(keys, 0))
    return order


def _distinct(
    x: Tensor, order: Tensor, dim: int, return_inverse: bool, return_counts: bool, shaped: Tensor | None
) -> Any:
    """What :func:`unique` returns, of slices in which equal ones are neighbours; ``order`` says where they stood."""
    count = x.shape[dim]
    rows = _rows(x, dim)
    fresh = creation.full((count,), True, dtype=bool_, device=x._instance)
    if count > 1:
        fresh[1:] = (rows[1:] != rows[:-1]).any(1)
    starts = fresh.nonzero().reshape(-1)
    results = [x.index_select(dim, starts)]
    if return_inverse:
        groups = fresh.cumsum(0) - 1
        inverse = groups.index_put((order,), groups) if count else groups
        results.append(inverse if shaped is None else inverse.reshape(shaped.shape))
    if return_counts:
        ends = creation.full(tuple(starts.shape), count, dtype=int64, device=x._instance)
        if starts.shape[0] > 1:
            ends[:-1] = starts[1:]
        results.append(ends - starts)
    return results[0] if len(results) == 1 else tuple(results)
