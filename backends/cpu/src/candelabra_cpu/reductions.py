"""Reductions, and the matrix product.

Numbers narrower than float64 are added and multiplied in float64, and the result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np
from candelabra.dtypes import FLOATING

from candelabra_cpu.backend import TO_NUMPY
from candelabra_cpu.numpy_kernels import KernelPerDtype, asarray, ndarray, numpy_kernel, run, run_in_context_copy
from candelabra_cpu.precision import DOUBLE, in_float64, is_half

Dims = tuple[int, ...] | None

_dot = ndarray.dot  # calls the same BLAS as np.matmul, in half the time for small matrices
_add: Callable[..., Any] = np.add.reduce
_multiply: Callable[..., Any] = np.multiply.reduce
_FEW: Final = 1 << 10
"""Numbers that NumPy adds up in their own dtype with an error of one or two units in the last place."""
_BLOCK: Final = 16
"""Rows that may be added one after another."""


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


# -- sums and products ------------------------------------------------------------------------------------------------
def wide_sum(x: Any, dim: Dims, keepdim: bool) -> Any:
    """Return the sum of a floating or complex array, in float64 or complex128 except for a few numbers.

    NumPy sums pairwise only along the axis that is innermost in memory. Along any other axis it adds row after row, and
    the error grows with the number of rows. float64 has no digits to lose, so there one half of the rows is added to
    the other until few are left.
    """
    if x.size < _FEW and x.dtype.char in "fd":
        return _add(x, dim, None, None, keepdim)
    if x.dtype.char in DOUBLE:
        return _add(x, dim, DOUBLE[x.dtype.char], None, keepdim)
    dims = range(x.ndim) if dim is None else dim
    if x.flags.c_contiguous and sorted(dims) == list(range(x.ndim - len(dims), x.ndim)):
        return _add(x, dim, None, None, keepdim)
    for d in dims:
        rows = np.moveaxis(x, d, 0)
        while len(rows) > _BLOCK:
            half, odd = divmod(len(rows), 2)
            last = rows[2 * half :]
            rows = rows[:half] + rows[half : 2 * half]
            rows[:odd] += last
        x = np.moveaxis(rows, 0, d)
    return _add(x, dim, None, None, keepdim)


def _sum(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        x = x.astype(TO_NUMPY[dtype], copy=False)
    if x.dtype.kind in "biu":
        return _add(x, dim, np.int64 if dtype is None else x.dtype, None, keepdim)
    return wide_sum(x, dim, keepdim).astype(x.dtype)


def sum(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    """The sum. If ``dtype`` is given, ``x`` is cast to it first, as in PyTorch."""
    try:
        if dtype is None and x.size < _FEW and x.dtype.char in "fd":  # saves two frames of Python
            out = run(_add, x, dim, None, None, keepdim)
        else:
            out = run(_sum, x, dim, keepdim, dtype)
    except RuntimeError:  # another thread is inside the context
        out = run_in_context_copy(_sum, x, dim, keepdim, dtype)
    return out if out.__class__ is ndarray else asarray(out)


def _mean(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        if dtype.category < FLOATING:
            raise ValueError(f"mean() expects a floating or complex dtype, got {dtype}")
        x = x.astype(TO_NUMPY[dtype], copy=False)
    count = x.size if dim is None else prod([x.shape[d] for d in dim])
    return np.divide(wide_sum(x, dim, keepdim), count).astype(x.dtype)


def _nansum(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    """The sum of the elements that are not NaN."""
    return _sum(_without_nan(x), dim, keepdim, dtype)


def _nanmean(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    """The mean of the elements that are not NaN."""
    x = x if dtype is None else x.astype(TO_NUMPY[dtype], copy=False)
    present = np.count_nonzero(~np.isnan(x), axis=dim, keepdims=keepdim)
    return np.divide(wide_sum(_without_nan(x), dim, keepdim), present).astype(x.dtype)


def _without_nan(x: Any) -> Any:
    return x if x.dtype.kind in "biu" else np.where(np.isnan(x), x.dtype.type(0), x)


def _prod(x: Any, dim: Dims, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        x = x.astype(TO_NUMPY[dtype], copy=False)
    # NumPy widens integers unless a dtype is given.
    wide = np.int64 if dtype is None and x.dtype.kind in "biu" else DOUBLE.get(x.dtype.char, x.dtype)
    out = _multiply(x, dim, wide, None, keepdim)
    return out.astype(x.dtype) if x.dtype.char in DOUBLE else out


def _logsumexp(x: Any, dim: Dims, keepdim: bool) -> Any:
    """``log(sum(exp(x)))``, shifted by the maximum."""
    real = x.real if x.dtype.kind == "c" else x
    top = asarray(np.max(real, axis=dim, keepdims=True, initial=-np.inf))
    top = np.where(np.isinf(top), 0.0, top)
    power = asarray(np.subtract(x, top))
    np.exp(power, power)
    total = np.log(wide_sum(power, dim, True)) + top
    return total if keepdim else total.reshape(()) if dim is None else total.squeeze(dim)


# -- extremes and truth -----------------------------------------------------------------------------------------------
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
    "nansum": numpy_kernel(_nansum), "nanmean": numpy_kernel(_nanmean),
    "logsumexp": numpy_kernel(in_float64(_logsumexp)),
    "argmax": numpy_kernel(_arg_reduction(np.argmax)), "argmin": numpy_kernel(_arg_reduction(np.argmin)),
}  # fmt: skip
