"""Functions of the standard that search, sort and select, and that return distinct elements."""

from __future__ import annotations

from candelabra._annotations import Any, NamedTuple
from candelabra._layout import wrap_dim
from candelabra._tensor import Tensor
from candelabra.array_api._array import Array, arrayed, arrays_of, named, promoted
from candelabra.dtypes import COMPLEX, INTEGER, bool_, int64


# -- searching --------------------------------------------------------------------------------------------------------
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first largest element along ``axis``, or in the flattened array if it is None."""
    return arrayed(named("argmax")(x, axis, keepdims))


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Return the index of the first smallest element along ``axis``, or in the flattened array if it is None."""
    return arrayed(named("argmin")(x, axis, keepdims))


def nonzero(x: Tensor, /) -> tuple[Array, ...]:
    """Return the indices of nonzero elements, a vector per dim, in row-major order. Raises ``ValueError`` for 0-d
    arrays.
    """
    if not x.ndim:
        raise ValueError("nonzero() expects an array of at least 1 dim, got a 0-d array")
    return tuple(arrayed(indices) for indices in named("nonzero")(x).unbind(1))


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Array:
    """Return the indices at which elements of ``x2`` keep the vector ``x1`` sorted: before ("left") or after equal
    elements.

    ``sorter`` has the indices that sort ``x1``. Raises ``ValueError`` for another ``side``.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted() expects side 'left' or 'right', not {side!r}")
    ordered = x1 if sorter is None else x1.index_select(0, sorter.to(int64))
    ordered, values = promoted(ordered, x2)
    if not isinstance(values, Tensor):
        values = named("full")((), values, dtype=ordered.dtype, device=ordered.device)
    return arrayed(named("searchsorted")(ordered, values, side=side))


def where(condition: Tensor, x1: Any, x2: Any, /) -> Array:
    """Return ``x1`` where ``condition`` holds, else ``x2``; one of the two may be a number."""
    arrays_of(x1, x2, name="where")
    return arrayed(named("where")(condition, *promoted(x1, x2)))


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Return whether each element of ``x1`` is in ``x2``, or with ``invert``, whether it is not. NaN equals no
    element.
    """
    arrays_of(x1, x2, name="isin")
    x1, x2 = promoted(x1, x2)
    return arrayed(named("isin")(x1, x2, invert=invert))


# -- sorting ----------------------------------------------------------------------------------------------------------
def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the indices that sort ``x`` along ``axis``; always stable. NaN is the largest."""
    return arrayed(named("argsort")(x, axis, descending, True))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Return the elements in order along ``axis``; always stable. NaN is the largest."""
    return arrayed(named("sort")(x, axis, descending, True)[0])


# -- selection --------------------------------------------------------------------------------------------------------
def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Array:
    """Return the slices of ``x`` at ``indices`` along ``axis``, which is optional for a vector."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"take() expects axis= unless x is a vector, got {x.ndim} dims")
    d = wrap_dim(axis or 0, x.ndim)
    chosen = x.index_select(d, _counted(indices, x.shape[d]).reshape((indices.numel(),)))
    return arrayed(chosen.reshape((*x.shape[:d], *indices.shape, *x.shape[d + 1 :])), x)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Array:
    """Return the elements of ``x`` at ``indices`` along ``axis``; the other axes broadcast."""
    d = wrap_dim(axis, x.ndim)
    return arrayed(named("take_along_dim")(x, _counted(indices, x.shape[d]), d))


def _counted(indices: Tensor, size: int) -> Tensor:
    """Return indices as non-negative int64."""
    if indices.dtype.category != INTEGER:
        raise IndexError(f"expected indices of an integer dtype, not {indices.dtype.name}")
    wide = indices.to(int64)
    return named("where")(wide < 0, wide + size, wide)  # type: ignore[no-any-return]


# -- sets -------------------------------------------------------------------------------------------------------------
class UniqueAll(NamedTuple):
    values: Array
    indices: Array
    """Return True where in the flattened array each first occurs."""
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    values: Array
    inverse_indices: Array


def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the distinct elements, their first indices, the index of the distinct value of each element, and the
    counts.

    Every NaN is distinct. The values are in ascending order, complex ones by their real part, then the imaginary one.
    """
    flat = x.reshape((x.numel(),)).detach()
    order = _ascending(flat)
    ordered = flat.index_select(0, order)
    count = ordered.numel()
    fresh = named("ones")(count, dtype=bool_, device=x.device)
    if count > 1:
        fresh[1:] = ordered[1:] != ordered[:-1]
    starts = named("nonzero")(fresh).reshape((-1,) if count else (0,))
    group = fresh.cumsum(0) - 1
    inverse = named("scatter")(order, 0, order, group) if count else group
    end = named("full")((min(count, 1),), count, device=x.device)
    ends = named("cat")([starts[1:], end])
    return UniqueAll(
        arrayed(ordered.index_select(0, starts)),
        arrayed(order.index_select(0, starts)),
        arrayed(inverse.reshape(x.shape)),
        arrayed(ends - starts),
    )


def _ascending(flat: Tensor) -> Tensor:
    argsort = named("argsort")
    if flat.dtype.category != COMPLEX:
        result: Tensor = argsort(flat, 0, False, True)
        return result
    order = argsort(flat.imag, 0, False, True)
    return order.index_select(0, argsort(flat.real.index_select(0, order), 0, False, True))  # type: ignore[no-any-return]


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the distinct elements and their counts; see :func:`unique_all`."""
    distinct = unique_all(x)
    return UniqueCounts(distinct.values, distinct.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the distinct elements and the index of the distinct value of each element; see :func:`unique_all`."""
    distinct = unique_all(x)
    return UniqueInverse(distinct.values, distinct.inverse_indices)


def unique_values(x: Tensor, /) -> Array:
    """Return the distinct elements in ascending order; see :func:`unique_all`."""
    return unique_all(x).values
