"""Tensors as sets: distinct elements, membership, combinations, products."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._dispatch.out import store
from candelabra._layout import wrap_dim
from candelabra._operators.families.searching import sorted_place
from candelabra._operators.primitives import creation
from candelabra._operators.shapes.expanding import meshgrid
from candelabra._operators.shapes.joining import cat, stack
from candelabra._operators.shapes.views import alias
from candelabra._operators.sorting.sort import argsort, ordered, sort
from candelabra._records.callables import public
from candelabra.dtypes import INTEGER, bool_, int64, uint64

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


@public
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
    if dim is None:
        flat = input.reshape(-1 if input.numel() else 0)
        values, order = sort(flat, 0) if return_inverse else (ordered(flat, 0), None)
        return _distinct(values, order, 0, return_inverse, return_counts, input)
    d = _whole_slices(input, dim, "unique")
    order = _lexical(input, d)
    return _distinct(input.index_select(d, order), order, d, return_inverse, return_counts, None)


@public
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """As :func:`unique`, dropping only elements (or slices) equal to the one before."""
    input = input.detach()
    flat = input.reshape(-1 if input.numel() else 0) if dim is None else input
    d = 0 if dim is None else _whole_slices(input, dim, "unique_consecutive")
    order = creation.arange(0, 1, flat.shape[d], dtype=int64, device=input._instance)
    return _distinct(flat, order, d, return_inverse, return_counts, input if dim is None else None)


def _whole_slices(input: Tensor, dim: int, name: str) -> int:
    d = wrap_dim(dim, input.ndim)
    if not input.ndim:
        raise RuntimeError(f"{name}(): a 0-d tensor has no slices along dim {dim}: leave dim out")
    if not input.numel() and (input.shape[d] or any(not s for i, s in enumerate(input.shape) if i != d)):
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return d


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
        order = order.index_select(0, argsort(keys, 0))
    return order


def _distinct(x: Tensor, order: Any, dim: int, return_inverse: bool, return_counts: bool, shaped: Tensor | None) -> Any:
    """What :func:`unique` returns, of slices in which equal ones are neighbours; ``order`` says where they stood."""
    count = x.shape[dim]
    rows = x if x.ndim == 1 else _rows(x, dim)
    fresh = creation.full((count,), True, dtype=bool_, device=x._instance)
    if count > 1:
        differ = rows[1:] != rows[:-1]
        fresh[1:] = differ if x.ndim == 1 else differ.any(1)
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


_FEW = 10
"""So few elements are compared one by one; of more it pays to sort them."""
_DENSE = 4
"""Integers are looked up in a table when it has no more than so many entries for each element that is asked about."""


@public(method=False)
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False, out: Tensor | None = None
) -> Any:
    """Which of ``elements`` are among ``test_elements`` (either may be a number); ``invert``: which are not.

    NaN is in nothing. ``assume_unique`` is accepted for PyTorch's sake.
    """
    if not hasattr(elements, "_payload"):
        if not hasattr(test_elements, "_payload"):
            raise TypeError("isin(): at least one of elements and test_elements must be a Tensor")
        found = (test_elements.detach() == elements).any()
    elif not hasattr(test_elements, "_payload"):
        found = elements.detach() == test_elements
    else:
        found = _members(elements.detach(), test_elements.detach())
    return store("isin", found.logical_not() if invert else found, out)


def _members(elements: Tensor, tests: Tensor) -> Tensor:
    count = tests.numel()
    if not count:
        return creation.full(tuple(elements.shape), False, dtype=bool_, device=elements._instance)
    flat = tests.reshape(-1)
    if count <= _FEW or elements.is_complex() or flat.is_complex():
        return (elements.unsqueeze(-1) == flat).any(-1)
    if elements.dtype.category <= INTEGER and flat.dtype.category == INTEGER and elements.dtype is not uint64:
        low, high = int(flat.amin().item()), int(flat.amax().item())
        if high - low < _DENSE * (count + elements.numel()) and low >= -(1 << 62) and high < 1 << 62:
            return _looked_up(elements, flat, low, high)
    members = ordered(flat, 0)
    places = sorted_place(members, elements, False).clamp(max=count - 1)
    return members.index_select(0, places.reshape(-1)).reshape(elements.shape) == elements


def _looked_up(elements: Tensor, tests: Tensor, low: int, high: int) -> Tensor:
    """Which elements are among integers from ``low`` to ``high``, by a table of them."""
    yes = creation.full(tuple(tests.shape), True, dtype=bool_, device=tests.device)
    table = creation.full((high - low + 1,), False, dtype=bool_, device=tests.device)
    table = table.index_put((tests.to(int64) - low,), yes)
    places = elements.to(int64).clamp(low - 1, high + 1) - low
    inside = (places >= 0) & (places <= high - low)
    found = table.index_select(0, places.clamp(0, high - low).reshape(places.numel()))
    return found.reshape(places.shape) & inside


@public(method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of ``r`` elements of a vector as rows, in the order of :mod:`itertools`.

    Raises ``RuntimeError`` where ``input`` is not 1-d or ``r`` is negative.
    """
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if not r:
        return creation.full((0,), 0, dtype=input.dtype, device=input._instance)
    places = _choices(input, r, with_replacement)
    return input.index_select(0, places.reshape(places.numel())).reshape(places.shape)


def _choices(input: Tensor, r: int, with_replacement: bool) -> Tensor:
    """The places of the elements of each choice: every choice of fewer, with each place that may follow its last."""
    count = input.shape[0]

    def numbered(size: int) -> Tensor:
        return creation.arange(0, 1, size, dtype=int64, device=input._instance)

    rows = numbered(count).unsqueeze(1)
    for _ in range(r - 1):
        following = rows.select(1, -1) + (0 if with_replacement else 1)
        several = count - following
        parents = numbered(rows.shape[0]).repeat_interleave(several)
        first = (following - several.cumsum(0) + several).index_select(0, parents)
        rows = cat([rows.index_select(0, parents), (numbered(parents.shape[0]) + first).unsqueeze(1)], 1)
    return rows


@public(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All choices of one element from each vector, as rows; of a single vector, that vector.

    Raises ``RuntimeError`` for tensors that are not 1-d.
    """
    for tensor in tensors:
        if tensor.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor.shape)}")
    if len(tensors) == 1:
        return alias(tensors[0])
    rows: Tensor = stack(meshgrid(*tensors, indexing="ij"), -1)
    return rows.reshape(rows.numel() // len(tensors), len(tensors))
