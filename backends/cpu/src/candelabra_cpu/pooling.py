"""Pooling: reduces one position of the kernel after another over all windows."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from candelabra_arrayapi.network import end_padding, kernel_offsets, kernels, window

from candelabra_cpu.convolution import padded
from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import in_float32

Ints = tuple[int, ...]

_generic = kernels(np, {})  # half types arrive as float32
LARGE_WINDOW = 32
"""The number of elements of a window from which maxima are computed row by row."""


def _lowest(x: Any) -> Any:
    return -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min


def _pad_for_windows(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output: Ints) -> Any:
    sizes = x.shape[x.ndim - len(kernel) :]
    after = end_padding(sizes, kernel, stride, padding, dilation, output)
    after = tuple(max(a, 0) for a in after)
    return padded(x, padding, after, _lowest(x)) if any(padding) or any(after) else x


def _rows_of_windows(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output: Ints) -> Any:
    """Return a copy with the elements of each window in the last dim, or None.

    It is faster to reduce rows than position by position if windows are large, and the copy is no larger than twice the
    input.
    """
    sizes = x.shape[x.ndim - len(kernel) :]
    if (
        prod(kernel) < LARGE_WINDOW
        or any(padding)
        or max(dilation) > 1
        or prod(kernel) * prod(output) > 2 * prod(sizes)
    ):
        return None
    if any((m - 1) * s + k > n for m, s, k, n in zip(output, stride, kernel, sizes)):
        return None
    axes = tuple(range(x.ndim - len(kernel), x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, axes)
    steps = tuple(slice(0, (m - 1) * s + 1, s) for m, s in zip(output, stride))
    windows = windows[(slice(None),) * (x.ndim - len(kernel)) + steps]
    return windows.reshape(*windows.shape[: x.ndim], prod(kernel))


def max_pool(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output: Ints) -> tuple[Any, Any]:
    """The maximum of each window and its index in the flattened plane."""
    rows = _rows_of_windows(x, kernel, stride, padding, dilation, output)
    if rows is not None:
        number = rows.argmax(-1)
        values = np.take_along_axis(rows, number[..., None], -1)[..., 0]
        if values.dtype.kind != "f" or not np.isnan(values).any():
            sizes = x.shape[x.ndim - len(kernel) :]
            return values, _plane_indices(number, sizes, kernel, stride, padding, dilation, output)
    padded_input = _pad_for_windows(x, kernel, stride, padding, dilation, output)
    best: Any = None
    best_number: Any = None
    for number, offset in enumerate(kernel_offsets(kernel)):
        values = padded_input[window(offset, stride, dilation, output)]
        if best is None:
            best, best_number = values.copy(), np.zeros(values.shape, np.min_scalar_type(prod(kernel)))
            continue
        np.copyto(best_number, number, where=values > best)
        np.maximum(best, values, out=best)
    # The generic kernel handles NaN, and windows that have no element above the padding value. Both are rare.
    if (best.dtype.kind == "f" and np.isnan(best).any()) or (padded_input is not x and (best == _lowest(x)).any()):
        values, indices = _generic["max_pool"](x, kernel, stride, padding, dilation, output)
        return values, indices
    return best, _plane_indices(best_number, x.shape[x.ndim - len(kernel) :], kernel, stride, padding, dilation, output)


def _plane_indices(
    number: Any, sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output: Ints
) -> Any:
    """Convert the number of a position in the kernel to an index in the flattened plane."""
    strides = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
    offsets = np.array(
        [sum(p * d * s for p, d, s in zip(offset, dilation, strides)) for offset in kernel_offsets(kernel)], np.int64
    )
    indices = offsets[number]
    for axis, (n, s, p, step) in enumerate(zip(output, stride, padding, strides)):
        start = (np.arange(n, dtype=np.int64) * s - p) * step
        indices += start.reshape((n, *[1] * (len(output) - axis - 1)))
    return indices


def max_pool_values(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output: Ints) -> Any:
    """The maximum of each window."""
    rows = _rows_of_windows(x, kernel, stride, padding, dilation, output)
    if rows is not None:
        return rows.max(-1)
    padded_input = _pad_for_windows(x, kernel, stride, padding, dilation, output)
    best = None
    for offset in kernel_offsets(kernel):
        values = padded_input[window(offset, stride, dilation, output)]
        best = values.copy() if best is None else np.maximum(best, values, out=best)
    return best


def scatter_planes(x: Any, index: Any, size: int, distinct: bool) -> Any:
    """Scatter or add values at indices into planes of zeros."""
    planes = prod(x.shape[:-1])
    flat = (index.reshape(planes, index.shape[-1]) + np.arange(planes, dtype=np.int64)[:, None] * size).reshape(-1)
    if index.size and (int(index.min()) < 0 or int(index.max()) >= size):
        raise IndexError(f"index out of range for a plane of {size} elements")
    if distinct:
        out = np.zeros(planes * size, x.dtype)
        out[flat] = x.reshape(-1)
    elif x.dtype.kind == "f":
        out = np.bincount(flat, weights=x.reshape(-1), minlength=planes * size).astype(x.dtype)
    else:
        out = np.zeros(planes * size, x.dtype)
        np.add.at(out, flat, x.reshape(-1))
    return out.reshape(*x.shape[:-1], size)


def sum_pool(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output: Ints) -> Any:
    """The sum of each window."""
    sizes = x.shape[x.ndim - len(kernel) :]
    after = end_padding(sizes, kernel, stride, padding, dilation, output)
    padded_input = padded(x, padding, tuple(max(a, 0) for a in after))
    total = None
    for offset in kernel_offsets(kernel):
        values = padded_input[window(offset, stride, dilation, output)]
        total = values.copy() if total is None else np.add(total, values, out=total)
    return total


def sum_pool_adjoint(y: Any, shape: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Any:
    """Add the value of each window to all elements of the window."""
    rank = len(kernel)
    output, sizes = y.shape[y.ndim - rank :], shape[len(shape) - rank :]
    extent = [
        max(n + 2 * p, (m - 1) * s + d * (k - 1) + 1)
        for n, p, m, s, d, k in zip(sizes, padding, output, stride, dilation, kernel)
    ]
    out: Any = np.zeros((*shape[: len(shape) - rank], *extent), y.dtype)
    for offset in kernel_offsets(kernel):
        target = out[window(offset, stride, dilation, output)]
        np.add(target, y, out=target)
    return np.ascontiguousarray(out[(..., *[slice(p, p + n) for p, n in zip(padding, sizes)])])


KERNELS: dict[str, Any] = {name: numpy_kernel(in_float32(kernel)) for name, kernel in (
    ("sum_pool", sum_pool), ("sum_pool_adjoint", sum_pool_adjoint), ("max_pool", max_pool),
    ("max_pool_values", max_pool_values), ("scatter_planes", scatter_planes),
)}  # fmt: skip
