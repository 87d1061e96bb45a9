"""Pooling: the windows of an array, one position of the kernel after the other."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from candelabra_arrayapi.network import kernels, end_padding, kernel_offsets, window

from candelabra_cpu.convolution import padded
from candelabra_cpu.halves import widened
from candelabra_cpu.quiet import quiet

Ints = tuple[int, ...]

_generic = kernels(np)


def _lowest(x: Any) -> Any:
    return -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min


def _framed(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> Any:
    sizes = x.shape[x.ndim - len(kernel) :]
    after = end_padding(sizes, kernel, stride, padding, dilation, places)
    after = tuple(max(a, 0) for a in after)
    return padded(x, padding, after, _lowest(x)) if any(padding) or any(after) else x


def max_pool(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> tuple[Any, Any]:
    """The largest value of each window, and its index in the plane."""
    framed = _framed(x, kernel, stride, padding, dilation, places)
    best: Any = None
    which: Any = None
    for number, position in enumerate(kernel_offsets(kernel)):
        part = framed[window(position, stride, dilation, places)]
        if best is None:
            best, which = part.copy(), np.zeros(part.shape, np.min_scalar_type(prod(kernel)))
            continue
        np.copyto(which, number, where=part > best)
        np.maximum(best, part, out=best)
    # Rare, and then the exact rules matter: NaN, and windows in which nothing is above the padding.
    if (best.dtype.kind == "f" and np.isnan(best).any()) or (framed is not x and (best == _lowest(x)).any()):
        values, indices = _generic["max_pool"](x, kernel, stride, padding, dilation, places)
        return values, indices
    return best, _places(which, x.shape[x.ndim - len(kernel) :], kernel, stride, padding, dilation, places)


def _places(which: Any, sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> Any:
    """From the number of a position in the kernel to the index in the flattened plane."""
    strides = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
    offsets = np.array([sum(p * d * s for p, d, s in zip(q, dilation, strides)) for q in kernel_offsets(kernel)], np.int64)
    indices = offsets[which]
    for axis, (n, s, p, step) in enumerate(zip(places, stride, padding, strides)):
        start = (np.arange(n, dtype=np.int64) * s - p) * step
        indices += start.reshape((n, *[1] * (len(places) - axis - 1)))
    return indices


def max_pool_values(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> Any:
    """The largest value of each window."""
    framed = _framed(x, kernel, stride, padding, dilation, places)
    best = None
    for position in kernel_offsets(kernel):
        part = framed[window(position, stride, dilation, places)]
        best = part.copy() if best is None else np.maximum(best, part, out=best)
    return best


def scatter_planes(x: Any, index: Any, size: int, distinct: bool) -> Any:
    """Zeros with values added at their indices, plane by plane."""
    planes = prod(x.shape[:-1])
    flat = (index.reshape(planes, -1) + np.arange(planes, dtype=np.int64)[:, None] * size).reshape(-1)
    if index.size and (int(index.min()) < 0 or int(index.max()) >= size):
        raise IndexError("index out of range")
    if distinct:
        out = np.zeros(planes * size, x.dtype)
        out[flat] = x.reshape(-1)
    elif x.dtype.kind == "f":
        out = np.bincount(flat, weights=x.reshape(-1), minlength=planes * size).astype(x.dtype)
    else:
        out = np.zeros(planes * size, x.dtype)
        np.add.at(out, flat, x.reshape(-1))
    return out.reshape(*x.shape[:-1], size)


def sum_pool(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> Any:
    """The sum of each window."""
    sizes = x.shape[x.ndim - len(kernel) :]
    after = end_padding(sizes, kernel, stride, padding, dilation, places)
    framed = padded(x, padding, tuple(max(a, 0) for a in after))
    total = None
    for position in kernel_offsets(kernel):
        part = framed[window(position, stride, dilation, places)]
        total = part.copy() if total is None else np.add(total, part, out=total)
    return total


def sum_pool_adjoint(y: Any, shape: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Any:
    """Each window's value added to every place of the window."""
    rank = len(kernel)
    places, sizes = y.shape[y.ndim - rank :], shape[len(shape) - rank :]
    reach = [
        max(n + 2 * p, (m - 1) * s + d * (k - 1) + 1)
        for n, p, m, s, d, k in zip(sizes, padding, places, stride, dilation, kernel)
    ]
    out: Any = np.zeros((*shape[: len(shape) - rank], *reach), y.dtype)
    for position in kernel_offsets(kernel):
        target = out[window(position, stride, dilation, places)]
        np.add(target, y, out=target)
    return np.ascontiguousarray(out[(..., *[slice(p, p + n) for p, n in zip(padding, sizes)])])


KERNELS: dict[str, Any] = {name: quiet(widened(kernel)) for name, kernel in (
    ("sum_pool", sum_pool), ("sum_pool_adjoint", sum_pool_adjoint), ("max_pool", max_pool),
    ("max_pool_values", max_pool_values), ("scatter_planes", scatter_planes),
)}  # fmt: skip
