"""Reductions for which NumPy is inaccurate or slow, and small matrix products.

NumPy sums pairwise only along the axis that is innermost in memory. Along any other axis it adds row after row, and the
error grows with the number of rows; this module sums those axes in blocks. Half types are summed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from candelabra.dtypes import FLOATING

from candelabra_cpu.backend import TO_NUMPY
from candelabra_cpu.numpy_kernels import KernelPerDtype, asarray, ndarray, numpy_kernel, run, run_in_context_copy
from candelabra_cpu.parallel import parallel_for
from candelabra_cpu.precision import is_half

Dims = tuple[int, ...] | None

_dot = ndarray.dot  # calls the same BLAS as np.matmul, in half the time for small matrices
_add: Callable[..., Any] = np.add.reduce
_multiply: Callable[..., Any] = np.multiply.reduce
_BLOCK = 16
"""Rows that are added one after another before block sums are added. The error grows with this number times a
logarithm."""
_CHUNK, _LONG = 256, 1 << 14
"""The length of the chunks that are summed in any order, and the size of the arrays for which that is faster."""


def _matmul(x: Any, y: Any) -> Any:
    if x.ndim == 2 == y.ndim:
        try:
            return run(_dot, x, y)
        except RuntimeError:  # another thread is inside the context
            return run_in_context_copy(_dot, x, y)
    return asarray(run_in_context_copy(np.matmul, x, y))


def _matmul_of_halves(x: Any, y: Any) -> Any:
    return asarray(run_in_context_copy(_matmul(x.astype(np.float32), y.astype(np.float32)).astype, x.dtype))


matmul = KernelPerDtype(lambda d: _matmul_of_halves if d.is_half else _matmul)
"""The matrix product. Half types are multiplied in float32."""


def accurate_sum(x: Any, dim: Dims, keepdim: bool) -> Any:
    """Return the sum of a float32, float64 or complex array in its dtype, in blocks or pairwise along every axis."""
    if x.ndim and x.flags.c_contiguous and (dim is None or dim == (x.ndim - 1,)):
        if x.size >= _LONG and x.dtype.char in "fd":
            return _sum_contiguous(x, dim, keepdim)
        return _add(x, dim, None, None, keepdim)
    if x.ndim < 2:
        return _add(x, dim, None, None, keepdim)
    if dim is None and x.flags.f_contiguous:
        return accurate_sum(x.T, None, False).reshape((1,) * x.ndim if keepdim else ())
    if dim == (0,) and x.flags.c_contiguous and len(x) > 128 and 0 < x.size // len(x) <= 128:
        summed = _sum_short_rows(x.reshape(len(x), -1)).reshape(x.shape[1:])
        return summed[None] if keepdim else summed
    return _sum_in_blocks(x, tuple(range(x.ndim)) if dim is None else dim, keepdim)


def _sum_contiguous(x: Any, dim: Dims, keepdim: bool) -> Any:
    """Sum a contiguous array, or its rows: short chunks by ``einsum``, which is fast, and the sums of the chunks
    pairwise.
    """
    shape, size = x.shape, x.size if dim is None else x.shape[-1]
    rows = x.reshape(-1, size)
    whole = size - size % _CHUNK
    if whole == size or len(rows) == 1:
        total = _add(np.einsum("ij->i", rows[:, :whole].reshape(-1, _CHUNK)).reshape(len(rows), -1), 1)
        if whole < size:
            total = total + _add(rows[:, whole:], 1)
    else:
        total = _add(rows, 1)
    if dim is None:
        return total.reshape((1,) * x.ndim if keepdim else ())
    return total.reshape((*shape[:-1], 1) if keepdim else shape[:-1])


def _sum_short_rows(x: Any) -> Any:
    """Sum many short rows. Several rows side by side form a long row, which NumPy adds seven times as fast."""
    rows, width = x.shape
    group = 1024 // width
    count = rows // group
    whole = count * group
    sums = _sum_in_blocks(x[:whole].reshape(count, group * width), (0,), False).reshape(group, width)
    return _sum_in_blocks(sums, (0,), False) + _sum_in_blocks(x[whole:], (0,), False)


def _sum_in_blocks(x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """Sum one axis after another, the last one first. A long axis is summed in blocks, and so are the block sums."""
    for axis in sorted(dims, reverse=True):
        while x.shape[axis] > 2 * _BLOCK and axis != x.ndim - 1:
            x = _block_sums(x, axis)
        x = _add(x, axis, None, None, True)
    return x if keepdim else x.reshape([s for i, s in enumerate(x.shape) if i not in dims])


def _block_sums(x: Any, axis: int) -> Any:
    """Return the sums of blocks along an axis; the last block may be short."""
    size = x.shape[axis]
    whole = size - size % _BLOCK
    blocks = x[(slice(None),) * axis + (slice(whole),)]
    sums = _add(blocks.reshape((*x.shape[:axis], whole // _BLOCK, _BLOCK, *x.shape[axis + 1 :])), axis + 1)
    if whole == size:
        return sums
    rest = _add(x[(slice(None),) * axis + (slice(whole, None),)], axis, None, None, True)
    return np.concatenate([sums, rest], axis)


def _sum(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        x = x.astype(TO_NUMPY[dtype], copy=False)
    if is_half(x):
        return asarray(accurate_sum(x.astype(np.float32), dim, keepdim)).astype(x.dtype)
    if x.dtype.kind in "fc":
        return accurate_sum(x, dim, keepdim)
    wide = np.int64 if dtype is None else x.dtype
    return _add(x, dim, wide, None, keepdim)


def sum(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    """The sum. If ``dtype`` is given, ``x`` is cast to it first, as in PyTorch."""
    try:
        plain = dtype is None and x.dtype.char in "fd" and x.flags.c_contiguous and x.size < _LONG
        if plain and (dim is None or x.ndim < 2):
            out = run(_add, x, dim, None, None, keepdim)
        else:
            out = run(_sum, x, dim, keepdim, dtype)
    except RuntimeError:
        out = run_in_context_copy(_sum, x, dim, keepdim, dtype)
    return out if out.__class__ is ndarray else asarray(out)


def _nansum(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    """The sum of the elements that are not NaN. An ordinary sum that is not NaN is the result."""
    total = asarray(_sum(x, dim, keepdim, dtype))
    if total.dtype.kind in "biu" or not np.isnan(total).any():
        return total
    return _sum(np.where(np.isnan(x), x.dtype.type(0), x), dim, keepdim, dtype)


def _nanmean(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    """The mean of the elements that are not NaN. An ordinary mean that is not NaN is the result."""
    mean = asarray(_mean(x, dim, keepdim, dtype))
    if not np.isnan(mean).any():
        return mean
    present = np.count_nonzero(~np.isnan(x), axis=dim, keepdims=keepdim)
    total = asarray(_nansum(x.astype(np.float32) if is_half(x) else x, dim, keepdim, dtype))
    return asarray(np.divide(total, np.asarray(present).astype(total.real.dtype))).astype(mean.dtype, copy=False)


def _logsumexp(x: Any, dim: Dims, keepdim: bool) -> Any:
    """``log(sum(exp(x)))``, shifted by the maximum, with one temporary. Half types are computed in float32."""
    if is_half(x):
        return asarray(_logsumexp(x.astype(np.float32), dim, keepdim)).astype(x.dtype)
    if x.ndim == 2 and dim == (1,):
        total = np.empty((len(x), 1), x.dtype)

        def rows(start: int, stop: int) -> None:
            total[start:stop] = _shifted_logsumexp(x[start:stop], dim)

        parallel_for(len(x), x.size, rows)
    else:
        total = _shifted_logsumexp(x, dim)
    return total if keepdim else _squeeze(total, dim)


def _shifted_logsumexp(x: Any, dim: Dims) -> Any:
    real = x.real if x.dtype.kind == "c" else x
    top = asarray(np.max(real, axis=dim, keepdims=True, initial=-np.inf))
    top = np.where(np.isinf(top), real.dtype.type(0), top)
    work = asarray(np.subtract(x, top))
    np.exp(work, out=work)
    return np.log(asarray(accurate_sum(work, dim, True))) + top


def _squeeze(x: Any, dim: Dims) -> Any:
    return x.reshape(()) if dim is None else x.squeeze(dim)


def _mean(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        if dtype.category < FLOATING:
            raise ValueError(f"mean() expects a floating or complex dtype, got {dtype}")
        x = x.astype(TO_NUMPY[dtype], copy=False)
    wide = x.astype(np.float32) if is_half(x) else x
    total = asarray(accurate_sum(wide, dim, keepdim))
    count = 1
    for i, size in enumerate(x.shape):
        if dim is None or i in dim:
            count *= size
    return asarray(np.divide(total, total.dtype.type(count))).astype(x.dtype, copy=False)


def _prod(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        x = x.astype(TO_NUMPY[dtype], copy=False)
    if is_half(x):
        return asarray(_multiply(x.astype(np.float32), dim, None, None, keepdim)).astype(x.dtype)
    wide = (
        np.int64 if dtype is None and x.dtype.kind in "biu" else x.dtype
    )  # NumPy widens integers unless a dtype is given
    if x.size >= _LONG and x.flags.c_contiguous and (dim is None or x.ndim == 1) and not x.size % (4 * _CHUNK):
        # Independent products side by side avoid the chain of dependent multiplications.
        products = _multiply(x.reshape(-1, _CHUNK), 0, wide)
        return _multiply(products, 0, wide).reshape((1,) * x.ndim if keepdim else ())
    return _multiply(x, dim, wide, None, keepdim)


def _extreme(reduce: Callable[..., Any]) -> Callable[..., Any]:
    # NumPy's maximum and minimum propagate NaN.
    def extreme(x: Any, dim: Dims, keepdim: bool) -> Any:
        if is_half(x):
            return asarray(reduce(x.astype(np.float32), dim, None, None, keepdim)).astype(x.dtype)
        return reduce(x, dim, None, None, keepdim)

    return extreme


def _logical(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def truth(x: Any, dim: Dims, keepdim: bool) -> Any:
        found = reduce(x if x.dtype.kind == "b" else x != 0, dim, None, None, keepdim)
        return asarray(found, np.uint8) if x.dtype == np.uint8 else found  # as the record says

    return truth


def _arg_reduction(find: Callable[..., Any]) -> Callable[..., Any]:
    # NumPy returns the first of equal elements, and the first NaN if there is one.
    def arg_reduction(x: Any, dim: int | None, keepdim: bool) -> Any:
        if is_half(x):
            x = x.astype(np.float32)
        return asarray(find(x, axis=dim if x.ndim else None, keepdims=keepdim), np.int64)

    return arg_reduction


KERNELS: dict[str, Any] = {
    "matmul": matmul, "sum": sum, "mean": numpy_kernel(_mean), "prod": numpy_kernel(_prod),
    "amax": numpy_kernel(_extreme(np.maximum.reduce)), "amin": numpy_kernel(_extreme(np.minimum.reduce)),
    "all": numpy_kernel(_logical(np.logical_and.reduce)), "any": numpy_kernel(_logical(np.logical_or.reduce)),
    "nansum": numpy_kernel(_nansum), "nanmean": numpy_kernel(_nanmean), "logsumexp": numpy_kernel(_logsumexp),
    "argmax": numpy_kernel(_arg_reduction(np.argmax)), "argmin": numpy_kernel(_arg_reduction(np.argmin)),
}  # fmt: skip
