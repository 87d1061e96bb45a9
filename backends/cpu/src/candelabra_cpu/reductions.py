"""Reductions where NumPy loses digits or time, and the small matrix product.

NumPy adds pairwise only along the axis that lies innermost in memory; along any other it adds row after row, and the
error grows with the number of rows: there they are added in blocks. Half types are added in float32 everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from candelabra.dtypes import FLOATING

from candelabra_cpu.backend import TO_NUMPY
from candelabra_cpu.parallel import split
from candelabra_cpu.quiet import ByDtype, asarray, ndarray, quiet, run, run_in_copy

Dims = tuple[int, ...] | None

_dot = ndarray.dot  # half the time of np.matmul on small matrices, and the same BLAS
_add: Callable[..., Any] = np.add.reduce
_multiply: Callable[..., Any] = np.multiply.reduce
_BLOCK = 16
"""Rows that are added one after another before their sums are added: the error grows with this times a logarithm."""
_STRIP, _LONG = 256, 1 << 14
"""The length of the strips that are added up without care for the order, and how many elements make that pay."""


def _matmul(x: Any, y: Any) -> Any:
    if x.ndim == 2 == y.ndim:
        try:
            return run(_dot, x, y)
        except RuntimeError:  # another thread is inside the context
            return run_in_copy(_dot, x, y)
    return asarray(run_in_copy(np.matmul, x, y))


def _matmul_of_halves(x: Any, y: Any) -> Any:
    return asarray(run_in_copy(_matmul(x.astype(np.float32), y.astype(np.float32)).astype, x.dtype))


matmul = ByDtype(lambda d: _matmul_of_halves if d.itemsize == 2 and d.is_floating_point else _matmul)
"""The matrix product; half types are multiplied in float32."""


def is_half(x: Any) -> bool:
    """Whether an array is float16 or bfloat16."""
    return bool(x.dtype.itemsize == 2 and x.dtype.kind not in "iu")


def added(x: Any, dim: Dims, keepdim: bool) -> Any:
    """The sum of a float32, float64 or complex array, in its dtype, in blocks or pairwise along every axis."""
    if x.ndim and x.flags.c_contiguous and (dim is None or dim == (x.ndim - 1,)):
        if x.size >= _LONG and x.dtype.char in "fd":
            return _strips(x, dim, keepdim)
        return _add(x, dim, None, None, keepdim)
    if x.ndim < 2:
        return _add(x, dim, None, None, keepdim)
    if dim is None and x.flags.f_contiguous:
        return added(x.T, None, False).reshape((1,) * x.ndim if keepdim else ())
    if dim == (0,) and x.flags.c_contiguous and len(x) > 128 and 0 < x.size // len(x) <= 128:
        folded = _folded(x.reshape(len(x), -1)).reshape(x.shape[1:])
        return folded[None] if keepdim else folded
    return _blocked(x, tuple(range(x.ndim)) if dim is None else dim, keepdim)


def _strips(x: Any, dim: Dims, keepdim: bool) -> Any:
    """The sum of a contiguous array, or of its rows: short strips by ``einsum``, which is fast, their sums pairwise."""
    shape, size = x.shape, x.size if dim is None else x.shape[-1]
    rows = x.reshape(-1, size)
    whole = size - size % _STRIP
    if whole == size or len(rows) == 1:
        total = _add(np.einsum("ij->i", rows[:, :whole].reshape(-1, _STRIP)).reshape(len(rows), -1), 1)
        if whole < size:
            total = total + _add(rows[:, whole:], 1)
    else:
        total = _add(rows, 1)
    if dim is None:
        return total.reshape((1,) * x.ndim if keepdim else ())
    return total.reshape((*shape[:-1], 1) if keepdim else shape[:-1])


def _folded(x: Any) -> Any:
    """The sum of many short rows: several rows side by side as one long one, which NumPy adds seven times as fast."""
    rows, width = x.shape
    fold = 1024 // width
    count = rows // fold
    whole = count * fold
    sums = _blocked(x[:whole].reshape(count, fold * width), (0,), False).reshape(fold, width)
    return _blocked(sums, (0,), False) + _blocked(x[whole:], (0,), False)


def _blocked(x: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    """One axis after the other, the last one first; long ones in blocks, block sums then added likewise."""
    for axis in sorted(dims, reverse=True):
        while x.shape[axis] > 2 * _BLOCK and axis != x.ndim - 1:
            x = _halfway(x, axis)
        x = _add(x, axis, None, None, True)
    return x if keepdim else x.reshape([s for i, s in enumerate(x.shape) if i not in dims])


def _halfway(x: Any, axis: int) -> Any:
    """Sums of blocks along an axis; the last one may be short."""
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
        return asarray(added(x.astype(np.float32), dim, keepdim)).astype(x.dtype)
    if x.dtype.kind in "fc":
        return added(x, dim, keepdim)
    wide = np.int64 if dtype is None else x.dtype
    return _add(x, dim, wide, None, keepdim)


def sum(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    """The sum; a dtype that is named is cast to first, as in PyTorch."""
    try:
        plain = dtype is None and x.dtype.char in "fd" and x.flags.c_contiguous and x.size < _LONG
        if plain and (dim is None or x.ndim < 2):
            out = run(_add, x, dim, None, None, keepdim)
        else:
            out = run(_sum, x, dim, keepdim, dtype)
    except RuntimeError:
        out = run_in_copy(_sum, x, dim, keepdim, dtype)
    return out if out.__class__ is ndarray else asarray(out)


def _nansum(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    """The sum itself wherever that is no NaN: then no element was one."""
    total = asarray(_sum(x, dim, keepdim, dtype))
    if total.dtype.kind in "biu" or not np.isnan(total).any():
        return total
    return _sum(np.where(np.isnan(x), x.dtype.type(0), x), dim, keepdim, dtype)


def _nanmean(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    """The mean itself wherever that is no NaN; else over those that are counted."""
    mean = asarray(_mean(x, dim, keepdim, dtype))
    if not np.isnan(mean).any():
        return mean
    present = np.count_nonzero(~np.isnan(x), axis=dim, keepdims=keepdim)
    total = asarray(_nansum(x.astype(np.float32) if is_half(x) else x, dim, keepdim, dtype))
    return asarray(np.divide(total, np.asarray(present).astype(total.real.dtype))).astype(mean.dtype, copy=False)


def _logsumexp(x: Any, dim: Dims, keepdim: bool) -> Any:
    """In memory that is used again; complex ones and half types as the composite does."""
    if is_half(x):
        return asarray(_logsumexp(x.astype(np.float32), dim, keepdim)).astype(x.dtype)
    if x.ndim == 2 and dim == (1,):
        total = np.empty((len(x), 1), x.dtype)

        def part(start: int, stop: int) -> None:
            total[start:stop] = _shifted_logsumexp(x[start:stop], dim)

        split(len(x), x.size, part)
    else:
        total = _shifted_logsumexp(x, dim)
    return total if keepdim else _without(total, dim)


def _shifted_logsumexp(x: Any, dim: Dims) -> Any:
    real = x.real if x.dtype.kind == "c" else x
    top = asarray(np.max(real, axis=dim, keepdims=True, initial=-np.inf))
    top = np.where(np.isinf(top), real.dtype.type(0), top)
    work = asarray(np.subtract(x, top))
    np.exp(work, out=work)
    return np.log(asarray(added(work, dim, True))) + top


def _without(x: Any, dim: Dims) -> Any:
    return x.reshape(()) if dim is None else x.squeeze(dim)


def _mean(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        if dtype.category < FLOATING:
            raise ValueError("means have floating dtypes")
        x = x.astype(TO_NUMPY[dtype], copy=False)
    wide = x.astype(np.float32) if is_half(x) else x
    total = asarray(added(wide, dim, keepdim))
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
    wide = np.int64 if dtype is None and x.dtype.kind in "biu" else x.dtype  # NumPy widens integers unless told
    if x.size >= _LONG and x.flags.c_contiguous and (dim is None or x.ndim == 1) and not x.size % (4 * _STRIP):
        # One product waits for the one before; side by side they do not.
        strips = _multiply(x.reshape(-1, _STRIP), 0, wide)
        return _multiply(strips, 0, wide).reshape((1,) * x.ndim if keepdim else ())
    return _multiply(x, dim, wide, None, keepdim)


def _extreme(reduce: Callable[..., Any]) -> Callable[..., Any]:
    # NumPy's maximum and minimum hand NaN on.
    def extreme(x: Any, dim: Dims, keepdim: bool) -> Any:
        if is_half(x):
            return asarray(reduce(x.astype(np.float32), dim, None, None, keepdim)).astype(x.dtype)
        return reduce(x, dim, None, None, keepdim)

    return extreme


def _truth(reduce: Callable[..., Any]) -> Callable[..., Any]:
    def truth(x: Any, dim: Dims, keepdim: bool) -> Any:
        found = reduce(x if x.dtype.kind == "b" else x != 0, dim, None, None, keepdim)
        return asarray(found, np.uint8) if x.dtype == np.uint8 else found  # as the record says

    return truth


def _place(find: Callable[..., Any]) -> Callable[..., Any]:
    # NumPy finds the first of equal elements, and the first NaN before all else.
    def place(x: Any, dim: int | None, keepdim: bool) -> Any:
        if is_half(x):
            x = x.astype(np.float32)
        return asarray(find(x, axis=dim if x.ndim else None, keepdims=keepdim), np.int64)

    return place


KERNELS: dict[str, Any] = {
    "matmul": matmul, "sum": sum, "mean": quiet(_mean), "prod": quiet(_prod),
    "amax": quiet(_extreme(np.maximum.reduce)), "amin": quiet(_extreme(np.minimum.reduce)),
    "all": quiet(_truth(np.logical_and.reduce)), "any": quiet(_truth(np.logical_or.reduce)),
    "nansum": quiet(_nansum), "nanmean": quiet(_nanmean), "logsumexp": quiet(_logsumexp),
    "argmax": quiet(_place(np.argmax)), "argmin": quiet(_place(np.argmin)),
}  # fmt: skip
