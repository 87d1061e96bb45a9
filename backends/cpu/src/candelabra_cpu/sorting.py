"""Stable sorting with NaN last, by sorting unsigned integers.

NumPy sorts integers with SIMD instructions, but its stable argsort is a merge sort that takes ten times as long. So
every element is mapped to an integer of the same order, its *key*. Key and index are packed into one integer and these
are sorted. No two are equal, equal keys are ordered by their indices, and the low bits are the permutation. Keys that
leave no room for an index (float64, wide int64) are sorted by NumPy's unstable argsort, and ties are then sorted by
index.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra import get_num_threads

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.parallel import parallel_for
from candelabra_cpu.precision import is_half

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def rows_of(x: Any, dim: int) -> Any:
    """Return the slices along ``dim`` as rows of a contiguous matrix."""
    rows = np.ascontiguousarray(np.moveaxis(x, dim, -1))
    return rows.reshape(rows.size // max(rows.shape[-1], 1), rows.shape[-1])


def restore_rows(rows: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Undo :func:`rows_of`: return rows of any length as slices along ``dim`` of an array with the other sizes of
    ``shape``.
    """
    moved = (*shape[:dim], *shape[dim + 1 :], rows.shape[-1])
    return np.ascontiguousarray(np.moveaxis(rows.reshape(moved), -1, dim))


def sort_keys(x: Any, descending: bool = False) -> Any:
    """Return integers in the order of ``x``, or in descending order.

    NaN of either sign is greater than all numbers; -0 equals 0.
    """
    if x.dtype.kind in "biu":
        result = x.view(np.uint8) if x.dtype.kind == "b" else x
        return ~result if descending else result
    bits = (x + x.dtype.type(0)).view(_UNSIGNED[x.itemsize])
    top = bits.dtype.type(1 << (8 * x.itemsize - 1))
    negative = bits >= top
    result = np.where(negative, ~bits, bits | top)
    if np.isnan(x).any():
        result[np.isnan(x)] = np.iinfo(bits.dtype).max
    return ~result if descending else result


def stable_argsort(rows: Any, descending: bool = False) -> Any:
    """Return the stable order of each row of a matrix, as int64."""
    count = len(rows)
    order = np.empty(rows.shape, np.int64)
    if not rows.size:
        return order
    if count == 1:
        order[0] = _argsort_keys(sort_keys(rows, descending))[0]
    else:

        def sort_rows(start: int, stop: int) -> None:
            order[start:stop] = _argsort_keys(sort_keys(rows[start:stop], descending))

        parallel_for(count, rows.size, sort_rows)
    return order


def _argsort_keys(keys: Any) -> Any:
    size = keys.shape[-1]
    low = keys.min()
    span, index_bits = (int(keys.max()) - int(low)).bit_length(), (size - 1).bit_length()
    if span + index_bits > 64:
        return _argsort_wide_keys(keys)
    # The difference is correct even if it wraps around, because its true value fits in the width.
    offset_keys = np.subtract(keys, low).view(_UNSIGNED[keys.itemsize])
    packed = offset_keys.astype(np.uint32 if span + index_bits <= 32 else np.uint64)
    packed <<= packed.dtype.type(index_bits)
    packed |= np.arange(size, dtype=packed.dtype)
    sort_in_place(packed)
    packed &= packed.dtype.type((1 << index_bits) - 1)
    return packed


def sort_in_place(rows: Any) -> None:
    """Sort each row. A single long row is partitioned and sorted in halves by two threads."""
    if rows.shape[0] > 1 or get_num_threads() < 2 or rows.size < 1 << 18:
        rows.sort(axis=-1)
        return
    row = rows[0]
    middle = row.size // 2
    row.partition(middle)
    parallel_for(2, rows.size, lambda a, b: [part.sort() for part in (row[:middle], row[middle:])[a:b]])


def _argsort_wide_keys(keys: Any) -> Any:
    """Sort 64-bit keys by an unstable argsort, then order every run of equal keys by index."""
    size = keys.shape[-1]
    order = np.argsort(keys, axis=-1)
    ordered = np.take_along_axis(keys, order, -1)
    differs = ordered[:, 1:] != ordered[:, :-1]
    if not differs.all():
        group = np.zeros(keys.shape, np.int64)
        np.cumsum(differs, axis=-1, out=group[:, 1:])
        order += group * size
        order.sort(axis=-1)
        order %= size
    return order


def sort(x: Any, dim: int, descending: bool, stable: bool) -> tuple[Any, Any]:
    """Return (values, indices): stable, NaN last (first if descending)."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    rows = rows_of(x, dim)
    order = stable_argsort(rows, descending)
    values = np.take_along_axis(rows, order, -1)
    return restore_rows(values, x.shape, dim), restore_rows(order, x.shape, dim)


def argsort(x: Any, dim: int, descending: bool, stable: bool) -> Any:
    """Return the indices of :func:`sort`."""
    return restore_rows(stable_argsort(rows_of(x, dim), descending), x.shape, dim) if x.ndim else np.zeros((), np.int64)


def ordered(x: Any, dim: int) -> Any:
    """Return the values in ascending order."""
    if not x.ndim:
        return x.copy()
    rows = rows_of(x, dim)
    if is_half(x):
        return restore_rows(np.take_along_axis(rows, stable_argsort(rows), -1), x.shape, dim)
    rows = rows.copy() if np.may_share_memory(rows, x) else rows
    sort_in_place(rows)
    return restore_rows(rows, x.shape, dim)


KERNELS: dict[str, Any] = {
    "sort": numpy_kernel(sort),
    "argsort": numpy_kernel(argsort),
    "ordered": numpy_kernel(ordered),
}
