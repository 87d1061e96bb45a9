"""Selection by partition instead of sorting (median, kthvalue, topk), and tallies.

Selection works on the integer keys of :mod:`candelabra_cpu.sorting`, which need no special case for NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.sorting import restore_rows, rows_of, sort_keys, stable_argsort

Pair = tuple[Any, Any]


def _argselect(rows: Any, rank: Any) -> Any:
    """Return the index, in each row, of the element that a stable sort moves to ``rank`` (a number, or one per row)."""
    keys = sort_keys(rows)
    ranks = np.broadcast_to(np.reshape(rank, (-1, 1)), (len(rows), 1))
    bound = np.take_along_axis(np.partition(keys, np.unique(ranks), axis=-1), ranks, -1)
    equal = keys == bound
    occurrence = ranks - np.count_nonzero(keys < bound, axis=-1, keepdims=True)
    return (np.cumsum(equal, axis=-1) > occurrence).argmax(-1)[:, None]


def _select(x: Any, dim: int, keepdim: bool, rank: Any) -> Pair:
    """Return values and indices of the elements whose rank in a stable sort is ``rank(rows)``."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    rows = rows_of(x, dim)
    indices = _argselect(rows, rank(rows)) if rows.size else np.empty((len(rows), 1), np.int64)
    values = restore_rows(np.take_along_axis(rows, indices, -1), x.shape, dim)
    indices = restore_rows(indices, x.shape, dim)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def kthvalue(x: Any, k: int, dim: int, keepdim: bool) -> Pair:
    """The k-th smallest element, counted from 1."""
    if not 1 <= k <= (x.shape[dim] if x.ndim else 1):
        raise ValueError(f"kthvalue() expects k in 1 to {x.shape[dim] if x.ndim else 1}, got {k}")
    return _select(x, dim, keepdim, lambda rows: k - 1)


def _nan_counts(rows: Any) -> Any:
    """Return the number of NaN in each row."""
    return np.count_nonzero(np.isnan(rows), axis=-1)


def _check_not_empty(x: Any, dim: int) -> None:
    if x.ndim and not x.shape[dim]:
        raise ValueError(f"median() expects a non-empty dim {dim}, got shape {x.shape}")


def median_dim(x: Any, dim: int, keepdim: bool) -> Pair:
    """The lower median, or the first NaN."""
    _check_not_empty(x, dim)

    def rank(rows: Any) -> Any:
        size, nans = rows.shape[-1], _nan_counts(rows)
        return np.where(nans > 0, size - nans, (size - 1) // 2)

    return _select(x, dim, keepdim, rank)


def nanmedian_dim(x: Any, dim: int, keepdim: bool) -> Pair:
    """The lower median of the elements that are not NaN."""
    _check_not_empty(x, dim)

    def rank(rows: Any) -> Any:
        size, nans = rows.shape[-1], _nan_counts(rows)
        return np.maximum(size - nans - 1, 0) // 2

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
    indices = _topk_indices(rows, k, largest) if rows.size and k else np.empty((len(rows), k), np.int64)
    return restore_rows(np.take_along_axis(rows, indices, -1), x.shape, dim), restore_rows(indices, x.shape, dim)


def _topk_indices(rows: Any, k: int, largest: bool) -> Any:
    """Return the indices of the first k elements in order: those below the k-th key, and the first ones equal to it."""
    keys = sort_keys(rows, largest)
    bound = np.partition(keys, k - 1, axis=-1)[:, k - 1 : k]
    selected = keys <= bound
    if np.count_nonzero(selected) > len(rows) * k:
        before, equal = keys < bound, keys == bound
        room = k - np.count_nonzero(before, axis=-1, keepdims=True)
        selected = before | (equal & (np.cumsum(equal, axis=-1) <= room))
    indices = np.nonzero(selected)[1].reshape(len(rows), k)
    order = stable_argsort(np.take_along_axis(rows, indices, -1), largest)
    return np.take_along_axis(indices, order, -1)


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
