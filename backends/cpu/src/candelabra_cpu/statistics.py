"""Selection by partition instead of sorting (median, kthvalue, topk), and tallies.

Selection works on the integer keys of :mod:`candelabra_cpu.sorting`, which need no special case for NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.parallel import parallel_for
from candelabra_cpu.sorting import restore_rows, rows_of, sort_keys, stable_argsort

Pair = tuple[Any, Any]


def _argselect(rows: Any, rank: Any) -> Any:
    """Return the index, in each row, of the element that a stable sort moves to ``rank`` (a number, or one per row)."""
    keys = sort_keys(rows)
    if isinstance(rank, int):
        bound = np.partition(keys, rank, axis=-1)[:, rank : rank + 1]
    else:
        distinct = np.unique(rank)
        ordered = np.partition(keys, distinct, axis=-1) if distinct.size < 16 else np.sort(keys, axis=-1)
        bound = np.take_along_axis(ordered, rank[:, None], -1)
    equal = keys == bound
    if np.count_nonzero(equal) == len(rows):
        return equal.argmax(-1)[:, None]
    occurrence = np.reshape(rank, (-1, 1)) - np.count_nonzero(keys < bound, axis=-1, keepdims=True)
    return (np.cumsum(equal, axis=-1) > occurrence).argmax(-1)[:, None]


def _select(x: Any, dim: int, keepdim: bool, rank: Any) -> Pair:
    """Return values and indices of the elements whose rank in a stable sort is ``rank(rows)``."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    rows = rows_of(x, dim)
    indices = np.empty((len(rows), 1), np.int64)

    def select_rows(start: int, stop: int) -> None:
        chunk = rows[start:stop]
        if chunk.size:
            indices[start:stop] = _argselect(chunk, rank(chunk))

    parallel_for(len(rows), rows.size, select_rows)
    values = restore_rows(np.take_along_axis(rows, indices, -1), x.shape, dim)
    indices = restore_rows(indices, x.shape, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def kthvalue(x: Any, k: int, dim: int, keepdim: bool) -> Pair:
    """The k-th smallest element, counted from 1."""
    if not 1 <= k <= (x.shape[dim] if x.ndim else 1):
        raise ValueError(f"kthvalue() expects k in 1 to {x.shape[dim] if x.ndim else 1}, got {k}")
    return _select(x, dim, keepdim, lambda rows: k - 1)


def _nan_counts(rows: Any) -> Any:
    """Return the number of NaN in each row, or None if there is none at all."""
    if rows.dtype.kind in "biu":
        return None
    nan = np.isnan(rows)
    return np.count_nonzero(nan, axis=-1) if nan.any() else None


def _check_not_empty(x: Any, dim: int) -> None:
    if x.ndim and not x.shape[dim]:
        raise ValueError(f"median() expects a non-empty dim {dim}, got shape {x.shape}")


def median_dim(x: Any, dim: int, keepdim: bool) -> Pair:
    """The lower median, or the first NaN."""
    _check_not_empty(x, dim)

    def rank(rows: Any) -> Any:
        size, nans = rows.shape[-1], _nan_counts(rows)
        middle = (size - 1) // 2
        return middle if nans is None else np.where(nans > 0, size - nans, middle)

    return _select(x, dim, keepdim, rank)


def nanmedian_dim(x: Any, dim: int, keepdim: bool) -> Pair:
    """The lower median of the elements that are not NaN."""
    _check_not_empty(x, dim)

    def rank(rows: Any) -> Any:
        size, nans = rows.shape[-1], _nan_counts(rows)
        return (size - 1) // 2 if nans is None else np.maximum(size - nans - 1, 0) // 2

    return _select(x, dim, keepdim, rank)


def topk(x: Any, k: int, dim: int, largest: bool, sorted: bool) -> Pair:
    """The k largest or smallest elements, in order. The first of equal elements wins."""
    if x.dtype.kind == "b" or not 0 <= k <= (x.shape[dim] if x.ndim else 1):
        raise ValueError(
            f"topk() expects real numbers and k in 0 to {x.shape[dim] if x.ndim else 1}, got {x.dtype} and {k}"
        )
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    rows = rows_of(x, dim)
    indices = np.empty((len(rows), k), np.int64)

    def select_rows(start: int, stop: int) -> None:
        indices[start:stop] = _topk_indices(rows[start:stop], k, largest)

    if indices.size:
        parallel_for(len(rows), rows.size, select_rows)
    return restore_rows(np.take_along_axis(rows, indices, -1), x.shape, dim), restore_rows(indices, x.shape, dim)


def _topk_indices(rows: Any, k: int, largest: bool) -> Any:
    size = rows.shape[-1]
    if 4 * k > size or size < 64:
        return stable_argsort(rows, largest)[:, :k]
    plain = rows.dtype.kind in "iu" or (rows.itemsize > 2 and not np.isnan(rows).any())
    keys = rows if plain else sort_keys(rows)
    rank = size - k if largest else k - 1
    bound = np.partition(keys, rank, axis=-1)[:, rank : rank + 1]
    candidates = np.flatnonzero(keys >= bound if largest else keys <= bound)
    if candidates.size != len(rows) * k:
        candidates = _first_ties(
            keys.reshape(-1)[candidates] == bound.reshape(-1)[candidates // size], candidates, size, k
        )
    indices = (candidates % size).reshape(len(rows), k)
    order = stable_argsort(np.take_along_axis(rows, indices, -1), largest)
    return np.take_along_axis(indices, order, -1)


def _first_ties(ties: Any, candidates: Any, size: int, k: int) -> Any:
    """Return the ``candidates`` that pass the bound, and as many of the ``ties`` as each row has room for."""
    row = candidates // size
    count = int(row[-1]) + 1
    tied = row[ties]
    remaining = k - np.bincount(row[~ties], minlength=count)
    before = np.searchsorted(tied, np.arange(count))
    selected = np.arange(tied.size) - before[tied] < remaining[tied]
    return np.sort(np.concatenate([candidates[~ties], candidates[ties][selected]]))


def tally(values: Any, weights: Any, size: int) -> Any:
    """Counts of the numbers below ``size``, or sums of their weights: in float64, or int64 for integer weights."""
    if weights is None:
        return np.bincount(values, minlength=size)
    if weights.dtype.kind in "biu":
        total = np.zeros(size, np.int64)
        np.add.at(total, values, weights)
        return total
    return np.bincount(values, weights, size).astype(weights.dtype, copy=False)


KERNELS: dict[str, Any] = {
    "kthvalue": numpy_kernel(kthvalue), "median_dim": numpy_kernel(median_dim),
    "nanmedian_dim": numpy_kernel(nanmedian_dim), "topk": numpy_kernel(topk), "tally": numpy_kernel(tally),
}  # fmt: skip
