"""The product with a banded matrix along a dim, as products of dense blocks of the matrix.

A dense product reads zeros of the band, but runs in BLAS: its time does not depend on the number of weights per row.
The sum of weighted selections takes less time where the matrix multiplies few vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import in_float32

ROWS = 64
"""The maximum number of rows of a block, and the approximate maximum number of its columns."""
PRODUCTS = 64
"""Large matrices with fewer products per row of the matrix take less time by weighted selections."""


def _blocks(start: Any, weight: Any, size: int) -> Iterator[tuple[slice, slice, Any]]:
    """Yield blocks: their rows, their columns, and their transposed elements."""
    count, width = weight.shape
    step = min(ROWS, max(16, ROWS * count // size))
    offsets = np.arange(width)
    for first in range(0, count, step):
        rows = slice(first, min(first + step, count))
        low, high = int(start[first]), int(start[rows.stop - 1]) + width
        block = np.zeros((high - low, rows.stop - first), weight.dtype)
        block[start[rows, None] - low + offsets, np.arange(rows.stop - first)[:, None]] = weight[rows]
        yield rows, slice(low, high), block


def _selected(x: Any, start: Any, weight: Any) -> Any:
    """Return the sum of weighted selections along dim 1. Elements with the weight 0 are not read."""
    total = None
    for k in range(weight.shape[1]):
        values, factors = x.take(start + k, 1), weight[:, k, None]
        if (factors != 1).any():
            values *= factors
            skipped = factors == 0
            if skipped.any():
                np.copyto(values, 0, where=skipped)
        total = values if total is None else np.add(total, values, out=total)
    return total


def resample(x: Any, dim: int, start: Any, weight: Any) -> Any:
    """Sum ``weight[i, k] * x[start[i] + k]`` over k, along ``dim``."""
    count, width = weight.shape
    shape = (*x.shape[:dim], count, *x.shape[dim + 1 :])
    if not prod(shape):
        return np.zeros(shape, x.dtype)
    lead, size, tail = prod(x.shape[:dim]), x.shape[dim], prod(x.shape[dim + 1 :])
    x = np.ascontiguousarray(x).reshape(lead, size, tail)
    # A product of a block multiplies infinities and NaN outside of the window by 0, which gives NaN.
    few = count > ROWS and lead * tail * width < PRODUCTS
    if width == 1 or few or not np.isfinite(x.sum()):
        return _selected(x, start, weight).reshape(shape)
    out = np.empty((lead, count, tail), x.dtype)
    for rows, columns, block in _blocks(start, weight, size):
        if tail == 1:
            np.matmul(x[:, columns, 0], block, out=out[:, rows, 0])
        else:
            np.matmul(block.T, x[:, columns], out=out[:, rows])
    return out.reshape(shape)


def transposed(start: Any, weight: Any, size: int) -> tuple[Any, Any]:
    """Return the starts and weights of the transpose of a matrix with ``size`` columns."""
    count, width = weight.shape
    # Column j is read by the rows that start up to j, without those that end before it.
    end = np.bincount(start, minlength=size).cumsum()
    first = np.concatenate([np.zeros(width, end.dtype), end])[:size]
    most = max(int((end - first).max()), 1)
    first = np.minimum(first, count - most)
    rows = first[:, None] + np.arange(most)
    k = np.arange(size)[:, None] - start[rows]
    return first, np.where((k >= 0) & (k < width), weight[rows, k.clip(0, width - 1)], weight.dtype.type(0))


def resample_adjoint(g: Any, dim: int, start: Any, weight: Any, size: int) -> Any:
    """The product with the transpose, which is a banded matrix too, because the starts do not decrease."""
    if not g.size or not size:
        return np.zeros((*g.shape[:dim], size, *g.shape[dim + 1 :]), g.dtype)
    return resample(g, dim, *transposed(start, weight, size))


KERNELS: dict[str, Any] = {
    "resample": numpy_kernel(in_float32(resample)),
    "resample_adjoint": numpy_kernel(in_float32(resample_adjoint)),
}
