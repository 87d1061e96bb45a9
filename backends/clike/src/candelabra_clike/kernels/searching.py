"""Top-k selection, and binary search in sorted sequences."""

from __future__ import annotations

from typing import Any

from candelabra.dtypes import int64

from candelabra_clike.array import StridedArray
from candelabra_clike.kernels.copies import clone, contiguous
from candelabra_clike.kernels.scattering import zeros
from candelabra_clike.kernels.sorting import key_dtype, keys, move_to_last, restore_dim, take_along
from candelabra_clike.templates.indexing import selection
from candelabra_clike.templates.indexing.argsort import argsort as argsort_keys


def topk(x: StridedArray, k: int, dim: int, largest: bool, sorted: bool) -> tuple[StridedArray, StridedArray]:
    """(values, indices) of the ``k`` largest or smallest elements, in order. The first of equal elements wins."""
    size = x.shape[dim] if x.shape else 1
    if not 0 <= k <= size:
        raise ValueError(f"topk() expects k in 0 to {size}, got {k}")
    if not x.shape:
        return clone(x), zeros(x, (), int64)
    if not k or not x.size:
        shape = (*x.shape[:dim], k, *x.shape[dim + 1 :])
        return x.engine.empty(shape, x.dtype), x.engine.empty(shape, int64)
    rows = move_to_last(x, dim)
    sort_keys = keys(x.dtype, largest)(rows, out=x.engine.empty(rows.shape, key_dtype(x.dtype)))
    if k <= selection.FEW and 4 * k <= size:
        indices = restore_dim(selection.smallest_k(sort_keys, k), dim)
    else:
        whole = argsort_keys(sort_keys, 8 * x.dtype.itemsize)
        indices = clone(restore_dim(whole.restrided((*whole.shape[:-1], k), whole.strides, 0), dim))
    return take_along(x, dim, indices), indices


def sorted_place(sequence: StridedArray, values: StridedArray, right: bool) -> StridedArray:
    """The insertion indices of ``values`` in a sequence that is sorted along its last dim."""
    if len(sequence.shape) > 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise ValueError(f"batches of shapes {sequence.shape} and {values.shape} do not match")
    return selection.insertion_indices(contiguous(sequence), contiguous(values), right)


KERNELS: dict[str, Any] = {"topk": topk, "sorted_place": sorted_place}
