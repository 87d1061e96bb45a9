"""Sorting along a dim: stable, with NaN as the largest element, with the same result on every device.

Every element is mapped to an unsigned integer of the same order, its *key*. The keys are sorted, and the values are
gathered in that order, so that all bits are preserved, including those of -0 and NaN.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from candelabra.dtypes import dtype, int64, uint8, uint16, uint32, uint64

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.kernels.copies import clone, contiguous
from candelabra_clike.kernels.indexing import zero_stride
from candelabra_clike.kernels.scattering import zeros
from candelabra_clike.language import Value, call, cast
from candelabra_clike.layouts import check_dims
from candelabra_clike.templates.elementwise.elementwise import Elementwise
from candelabra_clike.templates.indexing import gather
from candelabra_clike.templates.indexing.argsort import argsort as argsort_keys
from candelabra_clike.templates.indexing.index_arrays import IndexedDim
from candelabra_clike.types import CTYPES

PERMUTATION = IndexOutOfBounds("sort", RuntimeError, "sort(): place {index} of {size} along dimension {dim}")
"""Never raised: the indices are a permutation."""


@lru_cache(None)
def keys(d: dtype, descending: bool) -> Elementwise:
    """Return the kernel that computes the keys of a dtype, uint32 or uint64, in ascending or descending order."""
    source, function = d, CTYPES[d].memory
    if d.is_half:
        source, function = uint16, CTYPES[d].converts
    elif d.name == "bool":
        source = uint8
    word = CTYPES[key_dtype(d)].memory

    def key(a: Value) -> Value:
        ascending = call(f"key_{function}", a)
        return cast(word, ascending) ^ ((1 << 8 * d.itemsize) - 1) if descending else ascending

    return Elementwise.of(f"keys_{'down' if descending else 'up'}_{d.name}", key, (source,), key_dtype(d))


def key_dtype(d: dtype) -> dtype:
    """Return the dtype of keys."""
    return uint64 if d.itemsize == 8 else uint32


def move_to_last(x: StridedArray, dim: int) -> StridedArray:
    """View an array with a dim moved to the end."""
    check_dims(x.shape, (dim,))
    return x.restrided(moved_to_last(x.shape, dim), moved_to_last(x.strides, dim), x.offset, x.dtype)


def moved_to_last(values: Shape, dim: int) -> Shape:
    """Return the values with that of one dim moved to the end."""
    return (*values[:dim], *values[dim + 1 :], values[dim])


def restore_dim(x: StridedArray, dim: int) -> StridedArray:
    """Undo :func:`move_to_last`; the result is contiguous."""

    def inserted(values: Shape) -> Shape:
        return (*values[:dim], values[-1], *values[dim:-1])

    return contiguous(x.restrided(inserted(x.shape), inserted(x.strides), x.offset))


def argsort(x: StridedArray, dim: int, descending: bool, stable: bool) -> StridedArray:
    """The indices of :func:`sort`."""
    if not x.shape:
        return zeros(x, (), int64)
    rows = move_to_last(x, dim)
    sort_keys = keys(x.dtype, descending)(rows, out=x.engine.empty(rows.shape, key_dtype(x.dtype)))
    return restore_dim(argsort_keys(sort_keys, 8 * x.dtype.itemsize), dim)


def sort(x: StridedArray, dim: int, descending: bool, stable: bool) -> tuple[StridedArray, StridedArray]:
    """(values, indices), stable, NaN last (first if descending)."""
    indices = argsort(x, dim, descending, stable)
    return take_along(x, dim, indices), indices


def take_along(x: StridedArray, dim: int, indices: StridedArray) -> StridedArray:
    """Return the elements at valid indices along ``dim``."""
    if not x.shape:
        return clone(x)
    out = x.engine.empty(indices.shape, x.dtype)
    indexed = (IndexedDim(indices.strides, dim, x.shape[dim], x.strides[dim]),)
    return gather.gather(out, x, zero_stride(x.strides, dim), [indices], indexed, PERMUTATION)


def ordered(x: StridedArray, dim: int) -> StridedArray:
    """The values in ascending order."""
    return sort(x, dim, False, True)[0]


KERNELS: dict[str, Any] = {"sort": sort, "argsort": argsort, "ordered": ordered}
