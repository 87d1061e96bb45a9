"""Cumulative sums, products, extremes and log-sum-exps.

NumPy's ``accumulate`` has a chain of dependent additions and takes four times as long as reading the memory. Long sums
of real numbers are therefore computed by a matrix product: ``rows @ triangle`` scans each short row, and the sum of the
rows before it is added. That product would spread infinities, so arrays that contain them use ``accumulate``. Scans
along an axis other than the last process whole rows at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from candelabra_cpu.backend import TO_NUMPY
from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.parallel import parallel_for
from candelabra_cpu.precision import is_half

_WIDER = {"e": np.float32, "f": np.float64, "F": np.complex128}
_SHORT = {"f": 32, "d": 16}
"""The length of the rows that are scanned by a matrix product."""
_BATCH = 128
"""The number of rows per matrix product: few enough that BLAS does not use its threads, which are slow to wake."""
_LONG = 1 << 12
_BLOCK = 1024
"""Elements per block when searching for new extremes; blocks without a new extreme are skipped."""
_WIDE = 256
"""The minimum row size for which one NumPy call per row is efficient."""


def _inner(x: Any, dim: int) -> int:
    """Return the number of elements per index along ``dim``."""
    return prod(x.shape[dim + 1 :])


def _cumsum_by_matmul(x: Any) -> Any:
    """Return cumulative sums along the last axis, whose size is a multiple of the short rows; None if a sum is not
    finite.
    """
    short = _SHORT[x.dtype.char]
    rows = x.reshape(-1, short)
    triangle = np.triu(np.ones((short, short), x.dtype))
    out = np.empty(rows.shape, x.dtype)
    batches = len(rows) // _BATCH

    def scan_batches(start: int, stop: int) -> None:
        selection = slice(start * _BATCH, stop * _BATCH)
        np.matmul(rows[selection].reshape(-1, _BATCH, short), triangle, out[selection].reshape(-1, _BATCH, short))

    parallel_for(batches, x.size, scan_batches)
    np.matmul(rows[batches * _BATCH :], triangle, out[batches * _BATCH :])
    out = out.reshape(-1, x.shape[-1] // short, short)
    before = np.add.accumulate(out[:, :-1, -1], axis=1, dtype=np.float64)
    if not np.isfinite(before).all() or not np.isfinite(out[:, -1]).all():
        return None
    out[:, 1:] += before[:, :, None].astype(x.dtype)
    return out.reshape(x.shape)


def _cumsum(x: Any, dim: int) -> Any:
    size = x.shape[dim]
    if x.dtype.char not in _SHORT or dim != x.ndim - 1 or size < _LONG // 8 or x.size < _LONG:
        return _accumulate(np.add, x, dim)
    whole = size - size % _SHORT[x.dtype.char]
    out = _cumsum_by_matmul(np.ascontiguousarray(x[..., :whole]))
    if out is None:
        return _accumulate(np.add, x, dim)
    if whole == size:
        return out
    rest = np.add.accumulate(x[..., whole:], -1, np.float64) + out[..., -1:]
    return np.concatenate([out, rest.astype(x.dtype)], -1)


def _accumulate(ufunc: Any, x: Any, dim: int) -> Any:
    """Accumulate one element after another in the next wider dtype."""
    wide = np.dtype(np.float32 if is_half(x) else _WIDER.get(x.dtype.char, x.dtype))
    if _inner(x, dim) < _WIDE:
        return ufunc.accumulate(x, dim, wide).astype(x.dtype, copy=False)
    out = np.empty(x.shape, x.dtype)
    source, target = np.moveaxis(x, dim, 0), np.moveaxis(out, dim, 0)
    running = source[0].astype(wide)
    target[0] = running
    for i in range(1, len(source)):
        ufunc(running, source[i], running)
        target[i] = running
    return out


def _scan(along: Callable[[Any, int], Any]) -> Callable[..., Any]:
    def scan(x: Any, dim: int, dtype: Any) -> Any:
        if dtype is not None:
            x = x.astype(TO_NUMPY[dtype], copy=False)
        elif x.dtype.kind in "biu":
            x = x.astype(np.int64, copy=False)
        return along(x, dim) if x.ndim and x.size else x.copy()

    return scan


def _cumulative_extreme(extreme: Any) -> Callable[..., Any]:
    """Return the kernel of cummax or cummin: the extreme so far and the last index that attains it. NaN propagates."""

    def kernel(x: Any, dim: int) -> tuple[Any, Any]:
        if not x.ndim or not x.size:
            return x.copy(), np.zeros(x.shape, np.int64)
        work = x.astype(np.float32) if is_half(x) else x
        values = np.empty(work.shape, work.dtype)
        indices = np.zeros(x.shape, np.int64)
        source, running, attained = (np.moveaxis(a, dim, -1) for a in (work, values, indices))

        def scan_rows(start: int, stop: int) -> None:
            _scan_rows(extreme, source[start:stop], running[start:stop], attained[start:stop])

        if _inner(x, dim) >= _WIDE:
            _scan_columns(extreme, work, values, indices, dim)
        elif x.ndim == 1:
            _scan_rows(extreme, source, running, attained)
        else:
            parallel_for(len(source), x.size, scan_rows)
        return values.astype(x.dtype, copy=False), indices

    return kernel


def _scan_rows(extreme: Any, source: Any, values: Any, indices: Any) -> None:
    size = source.shape[-1]
    whole = size - size % _BLOCK
    if whole >= 4 * _BLOCK:
        _scan_blocks(extreme, *(a[..., :whole] for a in (source, values, indices)))
        if whole == size:
            return
    else:
        whole = 0
    rest = slice(whole, size)
    extreme.accumulate(source[..., rest], -1, None, values[..., rest])
    if whole:
        extreme(values[..., rest], values[..., whole - 1 : whole], out=values[..., rest])
    np.multiply(_attains(source[..., rest], values[..., rest]), np.arange(whole, size), out=indices[..., rest])
    if whole:
        indices[..., whole] = np.maximum(indices[..., whole], indices[..., whole - 1])
    np.maximum.accumulate(indices[..., rest], -1, None, indices[..., rest])


def _attains(source: Any, values: Any) -> Any:
    """Return where the elements attain the extreme so far, or are NaN."""
    hits = source == values
    if source.dtype.kind == "f":
        hits |= source != source
    return hits


def _scan_blocks(extreme: Any, source: Any, values: Any, indices: Any) -> None:
    """Scan block by block. Most blocks have no new extreme and are filled with the last one."""
    count = source.shape[-1] // _BLOCK
    shape = (source.size // max(source.shape[-1], 1), count, _BLOCK)
    blocks = np.ascontiguousarray(source).reshape(shape)
    best = extreme.reduce(blocks, axis=-1)
    so_far = extreme.accumulate(best, axis=1)
    has_new_extreme = _attains(best, so_far)
    row, block = np.nonzero(has_new_extreme)
    selected = blocks[row, block]
    extremes = extreme.accumulate(selected, -1)
    later = block > 0
    extremes[later] = extreme(extremes[later], so_far[row[later], block[later] - 1][:, None])
    attained = np.maximum.accumulate(_attains(selected, extremes) * (np.arange(_BLOCK) + block[:, None] * _BLOCK), -1)
    last = np.zeros(has_new_extreme.shape, np.int64)
    last[row, block] = attained[:, -1]
    np.maximum.accumulate(last, 1, None, last)
    attained[later] = np.maximum(attained[later], last[row[later], block[later] - 1][:, None])
    for target, before, selected in ((values, so_far, extremes), (indices, last, attained)):
        filled = np.empty(shape, target.dtype)
        filled[:, 1:] = before[:, :-1, None]
        filled[row, block] = selected
        target[...] = filled.reshape(target.shape)


def _scan_columns(extreme: Any, source: Any, values: Any, indices: Any, dim: int) -> None:
    source, values, indices = (np.moveaxis(a, dim, 0) for a in (source, values, indices))
    values[0] = source[0]
    floating = source.dtype.kind == "f"
    for i in range(1, len(source)):
        extreme(values[i - 1], source[i], out=values[i])
        attained = source[i] == values[i]
        if floating:
            attained |= source[i] != source[i]
        indices[i] = indices[i - 1]
        indices[i][attained] = i


LOGCUMSUMEXP_BLOCK = 1024
"""Exponentials that are summed relative to one maximum."""


def logcumsumexp(x: Any, dim: int) -> Any:
    """Cumulative log-sum-exps. float64 is summed in blocks, the other real dtypes by ``logaddexp`` in a wider dtype."""
    if x.dtype.kind == "c":
        return _complex_logcumsumexp(x, dim)
    if not x.ndim or not x.size:
        return x.copy()
    return _logcumsumexp_float64(x, dim) if x.dtype == np.float64 else _accumulate(np.logaddexp, x, dim)


def _logcumsumexp_float64(x: Any, dim: int) -> Any:
    """Sum exponentials relative to the largest finite element so far, block by block, and take the logarithms of the
    sums.

    ``logaddexp`` for every element would add a rounding error each: 60 ULP after 20,000 elements.
    """
    out = np.empty(x.shape, x.dtype)
    source, target = np.moveaxis(x, dim, -1), np.moveaxis(out, dim, -1)
    high, total = np.full(source.shape[:-1], -np.inf), np.zeros(source.shape[:-1])
    for start in range(0, source.shape[-1], LOGCUMSUMEXP_BLOCK):
        block, result = source[..., start : start + LOGCUMSUMEXP_BLOCK], target[..., start : start + LOGCUMSUMEXP_BLOCK]
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
            result[underflow] = np.logaddexp.accumulate(np.concatenate([before[..., None], block[underflow]], -1), -1)[
                ..., 1:
            ]
        high, total = maximum, sums[..., -1]
    return out


def _complex_logcumsumexp(x: Any, dim: int) -> Any:
    if not x.ndim or not x.size:
        return x.copy()
    out = np.empty(x.shape, x.dtype)
    source, target = np.moveaxis(x, dim, 0), np.moveaxis(out, dim, 0)
    running = source[0].astype(np.complex128)
    target[0] = running
    for i in range(1, len(source)):
        term = source[i].astype(np.complex128)
        first = running.real >= term.real
        high, low = np.where(first, running, term), np.where(first, term, running)
        running = np.where(np.isinf(high.real), high, high + np.log1p(np.exp(low - high)))
        target[i] = running
    return out


KERNELS: dict[str, Any] = {
    "cumsum": numpy_kernel(_scan(_cumsum)),
    "cumprod": numpy_kernel(_scan(lambda x, dim: _accumulate(np.multiply, x, dim))),
    "cummax": numpy_kernel(_cumulative_extreme(np.maximum)),
    "cummin": numpy_kernel(_cumulative_extreme(np.minimum)),
    "logcumsumexp": numpy_kernel(logcumsumexp),
}
