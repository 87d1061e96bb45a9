"""Functions of the standard that search, sort, select and find distinct elements."""

from __future__ import annotations

from candelabra._annotations import Any, NamedTuple
from candelabra._layout import wrap_dim
from candelabra._tensor import Tensor
from candelabra.array_api._array import Array, arrayed, arrays_of, named, promoted
from candelabra.dtypes import COMPLEX, INTEGER, bool_, int64


# -- searching --------------------------------------------------------------------------------------------------------
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the (first) largest element; without an axis that of the flattened array."""
    return arrayed(named("argmax")(x, axis, keepdims))


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """The index of the (first) smallest element; without an axis that of the flattened array."""
    return arrayed(named("argmin")(x, axis, keepdims))


def nonzero(x: Tensor, /) -> tuple[Array, ...]:
    """Return the indices of nonzero elements, a vector per dim, in row-major order. ``ValueError`` for 0-d arrays."""
    if not x.ndim:
        raise ValueError("nonzero() takes an array with dims, and this one has none")
    return tuple(arrayed(indices) for indices in named("nonzero")(x).unbind(1))


def searchsorted(x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None) -> Array:
    """Where the elements of ``x2`` would go into the sorted vector ``x1``: before ("left") or after its equals.

    ``sorter`` holds the indices that sort ``x1``. ``ValueError`` for another ``side``.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted(): side is 'left' or 'right', not {side!r}")
    ordered = x1 if sorter is None else x1.index_select(0, sorter.to(int64))
    ordered, values = promoted(ordered, x2)
    if not isinstance(values, Tensor):
        values = named("full")((), values, dtype=ordered.dtype, device=ordered.device)
    return arrayed(named("searchsorted")(ordered, values, side=side))


def where(condition: Tensor, x1: Any, x2: Any, /) -> Array:
    """``x1`` where ``condition`` holds, else ``x2``; one of the two may be a number."""
    arrays_of(x1, x2, name="where")
    return arrayed(named("where")(condition, *promoted(x1, x2)))


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Whether each element of ``x1`` is among those of ``x2`` (with ``invert``: is not); NaN never is."""
    arrays_of(x1, x2, name="isin")
    x1, x2 = promoted(x1, x2)
    return arrayed(named("isin")(x1, x2, invert=invert))


# -- sorting ----------------------------------------------------------------------------------------------------------
def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The indices that sort ``x`` along ``axis``; always stable. NaN counts as the largest."""
    return arrayed(named("argsort")(x, axis, descending, True))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along ``axis``; always stable. NaN counts as the largest."""
    return arrayed(named("sort")(x, axis, descending, True)[0])


# -- selecting --------------------------------------------------------------------------------------------------------
def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Array:
    """The slices of ``x`` at ``indices`` along ``axis``, which only a vector may leave out."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"take(): name the axis, for only a vector has no more than one and this has {x.ndim} dims")
    d = wrap_dim(axis or 0, x.ndim)
    chosen = x.index_select(d, _counted(indices, x.shape[d]).reshape((indices.numel(),)))
    return arrayed(chosen.reshape((*x.shape[:d], *indices.shape, *x.shape[d + 1 :])), x)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Array:
    """The elements of ``x`` at ``indices`` along ``axis``; the other axes broadcast."""
    d = wrap_dim(axis, x.ndim)
    return arrayed(named("take_along_dim")(x, _counted(indices, x.shape[d]), d))


def _counted(indices: Tensor, size: int) -> Tensor:
    """Indices as int64 counted from the front."""
    if indices.dtype.category != INTEGER:
        raise IndexError(f"indices are of an integer dtype, not {indices.dtype.name}")
    wide = indices.to(int64)
    return named("where")(wide < 0, wide + size, wide)  # type: ignore[no-any-return]


# -- sets -------------------------------------------------------------------------------------------------------------
class UniqueAll(NamedTuple):
    values: Array
    indices: Array
    """Where in the flattened array each first occurs."""
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    values: Array
    inverse_indices: Array


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements, where each first occurs, which of them each element is, and how often each occurs.

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
        found: Tensor = argsort(flat, 0, False, True)
        return found
    order = argsort(flat.imag, 0, False, True)
    return order.index_select(0, argsort(flat.real.index_select(0, order), 0, False, True))  # type: ignore[no-any-return]


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements and how often each occurs; see :func:`unique_all`."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements and which of them each element is; see :func:`unique_all`."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Tensor, /) -> Array:
    """The distinct elements in ascending order; see :func:`unique_all`."""
    return unique_all(x).values
