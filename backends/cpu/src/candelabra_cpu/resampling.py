"""The product with a banded matrix along a dim, as products of dense blocks of the matrix.

A dense product reads zeros of the band, but runs in BLAS: for 64 rows it is faster than the sum of two weighted
selections, and its time does not depend on the number of weights per row.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from candelabra_cpu.half_precision import in_float32
from candelabra_cpu.numpy_kernels import numpy_kernel

Ints = tuple[int, ...]
Rows = tuple[tuple[float, ...], ...]
ROWS = 64
"""The maximum number of rows of a block, and the approximate maximum number of its columns."""


@lru_cache(128)
def _blocks(start: Ints, weight: Rows, size: int, dtype: Any) -> tuple[tuple[slice, slice, Any], ...]:
    """Return blocks: their rows, their columns, and their transposed elements."""
    count, width = len(start), len(weight[0])
    step = min(ROWS, max(16, ROWS * count // size))
    starts, weights = np.array(start), np.array(weight, dtype)
    blocks = []
    for first in range(0, count, step):
        rows = slice(first, min(first + step, count))
        low, high = int(starts[rows].min()), int(starts[rows].max()) + width
        block = np.zeros((high - low, rows.stop - first), dtype)
        columns = starts[rows, None] - low + np.arange(width)
        block[columns, np.arange(rows.stop - first)[:, None]] = weights[rows]
        blocks.append((rows, slice(low, high), block))
    return tuple(blocks)


def _selected(x: Any, start: Ints, weight: Rows) -> Any:
    """Return the sum of weighted selections along dim 1. Elements with the weight 0 are not read."""
    starts, weights = np.array(start, np.intp), np.array(weight, x.dtype)
    total = None
    for k in range(weights.shape[1]):
        values, factors = x.take(starts + k, 1), weights[:, k, None]
        if (factors != 1).any():
            values *= factors
            values = np.where(factors == 0, values.dtype.type(0), values)
        total = values if total is None else total + values
    return total


def resample(x: Any, dim: int, start: Ints, weight: Rows) -> Any:
    """Sum ``weight[i][k] * x[start[i] + k]`` over k, along ``dim``."""
    shape = (*x.shape[:dim], len(start), *x.shape[dim + 1 :])
    if not prod(shape):
        return np.zeros(shape, x.dtype)
    lead, size, tail = prod(x.shape[:dim]), x.shape[dim], prod(x.shape[dim + 1 :])
    x = np.ascontiguousarray(x).reshape(lead, size, tail)
    # A product of a block multiplies infinities and NaN outside of the window by 0, which gives NaN.
    if len(weight[0]) == 1 or not np.isfinite(x.sum()):
        return _selected(x, start, weight).reshape(shape)
    out = np.empty((lead, len(start), tail), x.dtype)
    for rows, columns, block in _blocks(start, weight, size, x.dtype):
        if tail == 1:
            np.matmul(x[:, columns, 0], block, out=out[:, rows, 0])
        else:
            np.matmul(block.T, x[:, columns], out=out[:, rows])
    return out.reshape(shape)


KERNELS: dict[str, Any] = {"resample": numpy_kernel(in_float32(resample))}
