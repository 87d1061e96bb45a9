"""The largest or smallest few along a dim, and places in what is sorted."""

from __future__ import annotations

from typing import Any

from candelabra.dtypes import int64

from candelabra_clike.array import StridedArray
from candelabra_clike.kernels.copying import clone, dense
from candelabra_clike.kernels.scattering import zeros
from candelabra_clike.kernels.sorting import back, key_dtype, keys, last, taken
from candelabra_clike.templates.indexing import selecting
from candelabra_clike.templates.indexing.ranking import order


def topk(x: StridedArray, k: int, dim: int, largest: bool, sorted: bool) -> tuple[StridedArray, StridedArray]:
    """(values, indices) of the ``k`` largest or smallest along ``dim``, in order; of equal ones the first."""
    size = x.shape[dim] if x.shape else 1
    if not 0 <= k <= size:
        raise ValueError("there are not so many elements")
    if not x.shape:
        return clone(x), zeros(x, (), int64)
    if not k or not x.size:
        shape = (*x.shape[:dim], k, *x.shape[dim + 1 :])
        return x.engine.empty(shape, x.dtype), x.engine.empty(shape, int64)
    rows = last(x, dim)
    found = keys(x.dtype, largest)(rows, out=x.engine.empty(rows.shape, key_dtype(x.dtype)))
    if k <= selecting.FEW and 4 * k <= size:
        indices = back(selecting.smallest(found, k), dim)
    else:
        whole = order(found, 8 * x.dtype.itemsize)
        indices = clone(back(whole.restrided((*whole.shape[:-1], k), whole.strides, 0), dim))
    return taken(x, dim, indices), indices


def sorted_place(sequence: StridedArray, values: StridedArray, right: bool) -> StridedArray:
    """Where each value would go in a sequence that ascends along its last dim."""
    if len(sequence.shape) > 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise ValueError("the rows do not fit")
    return selecting.places(dense(sequence), dense(values), right)


KERNELS: dict[str, Any] = {"topk": topk, "sorted_place": sorted_place}
