"""Stable sorting with NaN last, by sorting integers.

NumPy sorts with SIMD instructions, but not in a stable way, and its stable argsort takes five times as long. So every
element is mapped to an integer of the same order, its *key*, and runs of equal keys are sorted by index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import in_float32

FEW = 256
"""Elements of a row up to which NumPy's stable argsort is as fast as the other one."""
_UNSIGNED = {2: np.uint16, 4: np.uint32, 8: np.uint64}


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
        keys = x.view(np.uint8) if x.dtype.kind == "b" else x
    else:
        bits = (x + x.dtype.type(0)).view(_UNSIGNED[x.itemsize])  # -0 becomes 0
        top = bits.dtype.type(1 << (8 * x.itemsize - 1))
        keys = np.where(bits >= top, ~bits, bits | top)
        keys[np.isnan(x)] = np.iinfo(bits.dtype).max
    return ~keys if descending else keys


def stable_argsort(rows: Any, descending: bool = False) -> Any:
    """Return the stable order of each row of a matrix, as int64."""
    keys = _narrowed(sort_keys(rows, descending))
    if keys.itemsize <= 2 or rows.shape[-1] < FEW:  # a radix sort, or one by insertion
        return np.argsort(keys, axis=-1, kind="stable")
    order = np.argsort(keys, axis=-1)
    if order.size:
        ordered, size = np.take_along_axis(keys, order, -1), rows.shape[-1]
        order[:, 1:] += np.cumsum(ordered[:, 1:] != ordered[:, :-1], axis=-1) * size  # the number of the run
        order.sort(axis=-1)
        order %= size
    return order


def _narrowed(keys: Any) -> Any:
    """Return keys of 16 bits in the same order, if these suffice: NumPy sorts them by radix, three times as fast."""
    if keys.itemsize <= 2 or keys.size < FEW:
        return keys
    low, high = keys.min(), keys.max()
    return (keys - low).astype(np.uint16) if int(high) - int(low) < 1 << 16 else keys


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
    return np.sort(x, dim) if x.ndim else x.copy()


KERNELS: dict[str, Any] = {
    "sort": numpy_kernel(sort), "argsort": numpy_kernel(argsort), "ordered": numpy_kernel(in_float32(ordered)),
}  # fmt: skip
