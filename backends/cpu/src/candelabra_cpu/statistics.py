"""The k-th, the middle, the largest few, by partition instead of sorting; and tallies.

All of it on the integer keys of :mod:`candelabra_cpu.sorting`, which know no NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.parallel import split
from candelabra_cpu.quiet import quiet
from candelabra_cpu.sorting import keys, order_of, rows_back, rows_of

Pair = tuple[Any, Any]


def _placed(rows: Any, place: Any) -> Any:
    """The index, in each row, of the element that a stable sort puts at ``place`` (a number, or one per row)."""
    found = keys(rows)
    if isinstance(place, int):
        bound = np.partition(found, place, axis=-1)[:, place : place + 1]
    else:
        distinct = np.unique(place)
        ordered = np.partition(found, distinct, axis=-1) if distinct.size < 16 else np.sort(found, axis=-1)
        bound = np.take_along_axis(ordered, place[:, None], -1)
    here = found == bound
    if np.count_nonzero(here) == len(rows):
        return here.argmax(-1)[:, None]
    among = np.reshape(place, (-1, 1)) - np.count_nonzero(found < bound, axis=-1, keepdims=True)
    return (np.cumsum(here, axis=-1) > among).argmax(-1)[:, None]


def _chosen(x: Any, dim: int, keepdim: bool, place: Any) -> Pair:
    """Values and indices at the place that ``place(rows)`` names."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    rows = rows_of(x, dim)
    places = np.empty((len(rows), 1), np.int64)

    def part(start: int, stop: int) -> None:
        piece = rows[start:stop]
        if piece.size:
            places[start:stop] = _placed(piece, place(piece))

    split(len(rows), rows.size, part)
    values = rows_back(np.take_along_axis(rows, places, -1), x.shape, dim)
    places = rows_back(places, x.shape, dim)
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def kthvalue(x: Any, k: int, dim: int, keepdim: bool) -> Pair:
    """The k-th smallest, counted from 1."""
    if not 1 <= k <= (x.shape[dim] if x.ndim else 1):
        raise ValueError("k is out of range")
    return _chosen(x, dim, keepdim, lambda rows: k - 1)


def _missing(rows: Any) -> Any:
    """How many NaN each row has; None where there is none at all."""
    if rows.dtype.kind in "biu":
        return None
    absent = np.isnan(rows)
    return np.count_nonzero(absent, axis=-1) if absent.any() else None


def _not_empty(x: Any, dim: int) -> None:
    if x.ndim and not x.shape[dim]:
        raise ValueError("nothing to choose from")


def median_dim(x: Any, dim: int, keepdim: bool) -> Pair:
    """The lower middle, or the first NaN."""
    _not_empty(x, dim)

    def place(rows: Any) -> Any:
        size, missing = rows.shape[-1], _missing(rows)
        middle = (size - 1) // 2
        return middle if missing is None else np.where(missing > 0, size - missing, middle)

    return _chosen(x, dim, keepdim, place)


def nanmedian_dim(x: Any, dim: int, keepdim: bool) -> Pair:
    """The lower middle of what is not NaN."""
    _not_empty(x, dim)

    def place(rows: Any) -> Any:
        size, missing = rows.shape[-1], _missing(rows)
        return (size - 1) // 2 if missing is None else np.maximum(size - missing - 1, 0) // 2

    return _chosen(x, dim, keepdim, place)


def topk(x: Any, k: int, dim: int, largest: bool, sorted: bool) -> Pair:
    """The k largest or smallest, in order; of equal elements the first ones."""
    if x.dtype.kind == "b" or not 0 <= k <= (x.shape[dim] if x.ndim else 1):
        raise ValueError("k is out of range")
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    rows = rows_of(x, dim)
    places = np.empty((len(rows), k), np.int64)

    def part(start: int, stop: int) -> None:
        places[start:stop] = _first(rows[start:stop], k, largest)

    if places.size:
        split(len(rows), rows.size, part)
    return rows_back(np.take_along_axis(rows, places, -1), x.shape, dim), rows_back(places, x.shape, dim)


def _first(rows: Any, k: int, largest: bool) -> Any:
    size = rows.shape[-1]
    if 4 * k > size or size < 64:
        return order_of(rows, largest)[:, :k]
    plain = rows.dtype.kind in "iu" or (rows.itemsize > 2 and not np.isnan(rows).any())
    found = rows if plain else keys(rows)
    place = size - k if largest else k - 1
    bound = np.partition(found, place, axis=-1)[:, place : place + 1]
    spots = np.flatnonzero(found >= bound if largest else found <= bound)
    if spots.size != len(rows) * k:
        spots = _first_ties(found.reshape(-1)[spots] == bound.reshape(-1)[spots // size], spots, size, k)
    places = (spots % size).reshape(len(rows), k)
    order = order_of(np.take_along_axis(rows, places, -1), largest)
    return np.take_along_axis(places, order, -1)


def _first_ties(ties: Any, spots: Any, size: int, k: int) -> Any:
    """Of the ``spots`` that reach the bound all that pass it, and of the ``ties`` as many as each row has room for."""
    row = spots // size
    count = int(row[-1]) + 1
    tied = row[ties]
    room = k - np.bincount(row[~ties], minlength=count)
    before = np.searchsorted(tied, np.arange(count))
    kept = np.arange(tied.size) - before[tied] < room[tied]
    return np.sort(np.concatenate([spots[~ties], spots[ties][kept]]))


def tally(places: Any, weights: Any, size: int) -> Any:
    """Counts, or sums of weights in float64 (of integers in int64), of the numbers below ``size``."""
    if weights is None:
        return np.bincount(places, minlength=size)
    if weights.dtype.kind in "biu":
        total = np.zeros(size, np.int64)
        np.add.at(total, places, weights)
        return total
    return np.bincount(places, weights, size).astype(weights.dtype, copy=False)


KERNELS: dict[str, Any] = {
    "kthvalue": quiet(kthvalue), "median_dim": quiet(median_dim), "nanmedian_dim": quiet(nanmedian_dim),
    "topk": quiet(topk), "tally": quiet(tally),
}  # fmt: skip
