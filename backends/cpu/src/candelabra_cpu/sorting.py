"""Sorting, stable and with NaN last, as the sorting of plain unsigned integers.

NumPy sorts integers with vector instructions, but its stable argsort is a merge sort that takes ten times as long. So
every element becomes an integer of the same order (its *key*), key and index are packed into one integer, and these are
sorted: no two are equal, equal keys stand in the order of their indices, and the low bits are the permutation. Keys
that leave no room for an index (float64, wide int64) go through NumPy's unstable argsort, and ties are put in order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.parallel import CORES, split
from candelabra_cpu.quiet import quiet

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def rows_of(x: Any, dim: int) -> Any:
    """The slices along ``dim`` as rows of a contiguous matrix."""
    rows = np.ascontiguousarray(np.moveaxis(x, dim, -1))
    return rows.reshape(rows.size // max(rows.shape[-1], 1), rows.shape[-1])


def rows_back(rows: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Rows of any length back as slices along ``dim`` of a tensor that else has ``shape``."""
    moved = (*shape[:dim], *shape[dim + 1 :], rows.shape[-1])
    return np.ascontiguousarray(np.moveaxis(rows.reshape(moved), -1, dim))


def keys(x: Any, descending: bool = False) -> Any:
    """Integers in the order of ``x``, or in the opposite one; NaN, of either sign, above all numbers; -0 as 0."""
    if x.dtype.kind in "biu":
        found = x.view(np.uint8) if x.dtype.kind == "b" else x
        return ~found if descending else found
    bits = (x + x.dtype.type(0)).view(_UNSIGNED[x.itemsize])
    top = bits.dtype.type(1 << (8 * x.itemsize - 1))
    negative = bits >= top
    found = np.where(negative, ~bits, bits | top)
    if np.isnan(x).any():
        found[np.isnan(x)] = np.iinfo(bits.dtype).max
    return ~found if descending else found


def order_of(rows: Any, descending: bool = False) -> Any:
    """The stable order of each row of a matrix, as int64."""
    count = len(rows)
    order = np.empty(rows.shape, np.int64)
    if not rows.size:
        return order
    if count == 1:
        order[0] = _order(keys(rows, descending))[0]
    else:

        def part(start: int, stop: int) -> None:
            order[start:stop] = _order(keys(rows[start:stop], descending))

        split(count, rows.size, part)
    return order


def _order(found: Any) -> Any:
    size = found.shape[-1]
    low = found.min()
    span, room = (int(found.max()) - int(low)).bit_length(), (size - 1).bit_length()
    if span + room > 64:
        return _order_wide(found)
    # The difference is right even where it wraps: it is taken modulo the width and is known to fit.
    above = np.subtract(found, low).view(_UNSIGNED[found.itemsize])
    packed = above.astype(np.uint32 if span + room <= 32 else np.uint64)
    packed <<= packed.dtype.type(room)
    packed |= np.arange(size, dtype=packed.dtype)
    sort_in_place(packed)
    packed &= packed.dtype.type((1 << room) - 1)
    return packed


def sort_in_place(rows: Any) -> None:
    """Sort each row; a single long one in halves, a thread each, after a partition."""
    if rows.shape[0] > 1 or CORES < 2 or rows.size < 1 << 18:
        rows.sort(axis=-1)
        return
    row = rows[0]
    middle = row.size // 2
    row.partition(middle)
    split(2, rows.size, lambda a, b: [part.sort() for part in (row[:middle], row[middle:])[a:b]])


def _order_wide(found: Any) -> Any:
    """For keys of 64 bits: an unstable order, then every run of equal keys put in the order of the indices."""
    size = found.shape[-1]
    order = np.argsort(found, axis=-1)
    ordered = np.take_along_axis(found, order, -1)
    fresh = ordered[:, 1:] != ordered[:, :-1]
    if not fresh.all():
        group = np.zeros(found.shape, np.int64)
        np.cumsum(fresh, axis=-1, out=group[:, 1:])
        order += group * size
        order.sort(axis=-1)
        order %= size
    return order


def sort(x: Any, dim: int, descending: bool, stable: bool) -> tuple[Any, Any]:
    """(values, indices), stable, NaN last (first when descending)."""
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    rows = rows_of(x, dim)
    order = order_of(rows, descending)
    values = np.take_along_axis(rows, order, -1)
    return rows_back(values, x.shape, dim), rows_back(order, x.shape, dim)


def argsort(x: Any, dim: int, descending: bool, stable: bool) -> Any:
    """The order alone."""
    return rows_back(order_of(rows_of(x, dim), descending), x.shape, dim) if x.ndim else np.zeros((), np.int64)


def ordered(x: Any, dim: int) -> Any:
    """The values alone, ascending."""
    if not x.ndim:
        return x.copy()
    rows = rows_of(x, dim)
    if x.dtype.kind not in "biu" and x.itemsize == 2:
        return rows_back(np.take_along_axis(rows, order_of(rows), -1), x.shape, dim)
    rows = rows.copy() if np.may_share_memory(rows, x) else rows
    sort_in_place(rows)
    return rows_back(rows, x.shape, dim)


KERNELS: dict[str, Any] = {"sort": quiet(sort), "argsort": quiet(argsort), "ordered": quiet(ordered)}
