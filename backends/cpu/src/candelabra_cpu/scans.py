"""Cumulative sums, products, extremes and log-sum-exps, in the next wider dtype."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np

from candelabra_cpu.backend import TO_NUMPY
from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import DOUBLE, in_float64, is_half

WIDE = 256
"""Elements per index along a dim from which one call of NumPy per index is faster than ``accumulate``."""
LONG = 256
"""Terms of a sum of float64 from which it is computed in blocks."""


def _accumulate(ufunc: np.ufunc, x: Any, dim: int, dtype: Any) -> Any:
    """Apply ``ufunc`` to the result so far and the next element along ``dim``, in a dtype."""
    if x.size < WIDE * x.shape[dim] or dim == x.ndim - 1:
        return ufunc.accumulate(x, dim, dtype)
    out = x.astype(dtype)
    rows = np.moveaxis(out, dim, 0)
    for before, row in pairwise(rows):
        ufunc(before, row, out=row)
    return out


def _sums_by_blocks(x: Any, dim: int) -> Any:
    """Return cumulative sums of float64: those of blocks of sqrt(n) terms plus the sums before each block.

    float64 has no wider dtype, and in a sum of n terms, one after the other, the error grows with n.
    """
    size = x.shape[dim]
    rows = np.moveaxis(x, dim, -1)
    block = isqrt(size)
    whole = size - size % block
    sums = np.add.accumulate(rows[..., :whole].reshape(*rows.shape[:-1], -1, block), -1)
    before = np.add.accumulate(sums[..., -1], -1)
    sums[..., 1:, :] += before[..., :-1, None]
    rest = np.add.accumulate(rows[..., whole:], -1) + before[..., -1:]
    out = np.concatenate([sums.reshape(*rows.shape[:-1], whole), rest], -1)
    if not np.isfinite(out).all():  # a block may overflow where the sum does not
        return _accumulate(np.add, x, dim, x.dtype)
    return np.ascontiguousarray(np.moveaxis(out, -1, dim))


def _scan(ufunc: np.ufunc) -> Callable[..., Any]:
    def scan(x: Any, dim: int, dtype: Any) -> Any:
        if dtype is not None:
            x = x.astype(TO_NUMPY[dtype], copy=False)
        elif x.dtype.kind in "biu":
            x = x.astype(np.int64, copy=False)
        if not x.ndim:
            return x.copy()
        if ufunc is np.add and x.dtype.char in "dD" and x.shape[dim] >= LONG:
            return _sums_by_blocks(x, dim)
        return _accumulate(ufunc, x, dim, DOUBLE.get(x.dtype.char, x.dtype)).astype(x.dtype, copy=False)

    return scan


def _cumulative_extreme(extreme: Any) -> Callable[..., Any]:
    """Return the kernel of cummax or cummin: the extreme so far and the last index that attains it. NaN propagates."""

    def kernel(x: Any, dim: int) -> tuple[Any, Any]:
        if not x.ndim:
            return x.copy(), np.zeros((), np.int64)
        work = x.astype(np.float32) if is_half(x) else x
        values = _accumulate(extreme, work, dim, work.dtype)
        attained = (work == values) | (work != work)
        positions = np.arange(x.shape[dim]).reshape(-1, *[1] * (x.ndim - dim - 1))
        return values.astype(x.dtype, copy=False), _accumulate(np.maximum, attained * positions, dim, np.int64)

    return kernel


BLOCK = 1024
"""Exponentials that are summed relative to one maximum."""


def logcumsumexp(x: Any, dim: int) -> Any:
    """Cumulative log-sum-exps of float64, or of complex numbers.

    Exponentials are summed relative to the largest finite element so far, block by block. ``logaddexp`` for every
    element would add a rounding error each: 60 ULP after 20,000 elements.
    """
    if not x.ndim or not x.size:
        return x.copy()
    out = np.empty(x.shape, x.dtype)
    source, target = np.moveaxis(x, dim, -1), np.moveaxis(out, dim, -1)
    high, total = np.full(source.shape[:-1], -np.inf), np.zeros(source.shape[:-1], x.dtype)
    for start in range(0, source.shape[-1], BLOCK):
        block, result = source[..., start : start + BLOCK], target[..., start : start + BLOCK]
        maximum = np.fmax(high, np.where(np.isfinite(block), block, -np.inf).max(-1))
        shift = np.where(np.isfinite(maximum), maximum, 0.0)
        carried = total * np.exp(high - shift)
        sums = np.cumsum(np.exp(block - shift[..., None]), -1)
        sums += carried[..., None]
        np.log(sums, out=result)
        result += shift[..., None]
        underflow = (sums < 1e-280).any(-1)  # far below the largest element of the block: the sum has lost digits
        if underflow.any():
            before = np.log(total[underflow]) + high[underflow]
            terms = np.concatenate([before[..., None], block[underflow]], -1)
            result[underflow] = np.logaddexp.accumulate(terms, -1)[..., 1:]
        high, total = maximum, sums[..., -1]
    return out


def _complex_logcumsumexp(x: Any, dim: int) -> Any:
    """Add one term after another to the logarithm of the sum so far, factoring out the larger of both."""
    out = x.copy()
    rows = np.moveaxis(out, dim, 0) if x.ndim else out[None]
    for i in range(1, len(rows)):
        first = rows[i - 1].real >= rows[i].real
        high, low = np.where(first, rows[i - 1], rows[i]), np.where(first, rows[i], rows[i - 1])
        rows[i] = np.where(np.isinf(high.real), high, high + np.log1p(np.exp(low - high)))
    return out


KERNELS: dict[str, Any] = {
    "cumsum": numpy_kernel(_scan(np.add)), "cumprod": numpy_kernel(_scan(np.multiply)),
    "cummax": numpy_kernel(_cumulative_extreme(np.maximum)), "cummin": numpy_kernel(_cumulative_extreme(np.minimum)),
    "logcumsumexp": numpy_kernel(in_float64(
        lambda x, dim: _complex_logcumsumexp(x, dim) if x.dtype.kind == "c" else logcumsumexp(x, dim)
    )),
}  # fmt: skip
