"""Convolution as a matrix product with patches of the padded input (im2col), for some images at a time."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from candelabra_arrayapi.network import conv_output_size, kernel_offsets, window
from numpy.lib.stride_tricks import as_strided

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import in_float32

Ints = tuple[int, ...]
CHUNK = 1 << 19
"""Elements of the patches of the images that are multiplied together: their memory does not grow with the batch."""


def _padded(x: Any, padding: Ints) -> Any:
    return np.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding))) if any(padding) else x


def _patches(x: Any, kernel: Ints, stride: Ints, dilation: Ints, output: Ints) -> Any:
    """Return the patch of every output position, as a view of shape (N, C, *kernel, *output)."""
    steps = x.strides[2:]
    inner = [s * d for s, d in zip(steps, dilation)]
    outer = [s * t for s, t in zip(steps, stride)]
    return as_strided(x, (*x.shape[:2], *kernel, *output), (*x.strides[:2], *inner, *outer), writeable=False)


def _chunks(count: int, size: int) -> Iterator[slice]:
    """Yield slices of a batch of ``count`` images that have ``size`` elements each."""
    step = max(1, CHUNK // max(size, 1))
    return (slice(start, start + step) for start in range(0, count, step))


def _check_sizes(x: Any, w: Any, output: Ints, groups: int) -> None:
    # The core reports which argument is wrong.
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups or any(n < 1 for n in output):
        raise ValueError(f"an input of shape {x.shape} does not fit a weight of shape {w.shape} in {groups} groups")


def conv(x: Any, w: Any, b: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    """The kernel of ``conv``: the products of the filters with the patches."""
    kernel = w.shape[2:]
    output = conv_output_size(x.shape[2:], kernel, stride, padding, dilation)
    _check_sizes(x, w, output, groups)
    rows, columns = prod(w.shape[1:]), prod(output)
    filters = w.reshape(groups, -1, rows)
    patches = _patches(_padded(x, padding), kernel, stride, dilation, output)
    out = np.empty((len(x), groups, w.shape[0] // groups, columns), x.dtype)
    for images in _chunks(len(x), groups * rows * columns):
        np.matmul(filters, patches[images].reshape(-1, groups, rows, columns), out=out[images])
    if b is not None:
        out += b.reshape(groups, -1, 1)
    return out.reshape(len(x), w.shape[0], *output)


def conv_weight(x: Any, y: Any, shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    """The kernel of ``conv_weight``: the products of gradient and patches, summed over the images."""
    output = y.shape[2:]
    rows, columns = prod(shape[1:]), prod(output)
    patches = _patches(_padded(x, padding), tuple(shape[2:]), stride, dilation, output)
    out = np.zeros((groups, shape[0] // groups, rows), x.dtype)
    for images in _chunks(len(x), groups * rows * columns):
        grad = y[images].reshape(-1, groups, shape[0] // groups, columns)
        out += np.matmul(grad, patches[images].reshape(-1, groups, rows, columns).swapaxes(-1, -2)).sum(0)
    return out.reshape(shape)


def conv_input(y: Any, w: Any, shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    """The kernel of ``conv_input``: the gradients of the patches, each added where its patch was."""
    kernel, output = w.shape[2:], y.shape[2:]
    rows, columns = prod(w.shape[1:]), prod(output)
    sizes = [
        max(n + 2 * p, (m - 1) * s + d * (k - 1) + 1)
        for n, p, m, s, d, k in zip(shape[2:], padding, output, stride, dilation, kernel)
    ]
    filters = w.reshape(groups, -1, rows).swapaxes(-1, -2)
    out: Any = np.zeros((*shape[:2], *sizes), y.dtype)
    for images in _chunks(len(y), groups * rows * columns):
        grads = np.matmul(filters, y[images].reshape(-1, groups, w.shape[0] // groups, columns))
        patches = grads.reshape(-1, shape[1], *kernel, *output)
        for offset in kernel_offsets(kernel):
            out[images][window(offset, stride, dilation, output)] += patches[(slice(None), slice(None), *offset)]
    return np.ascontiguousarray(out[(..., *[slice(p, p + n) for p, n in zip(padding, shape[2:])])])


KERNELS: dict[str, Any] = {name: numpy_kernel(in_float32(f)) for name, f in (
    ("conv", conv), ("conv_weight", conv_weight), ("conv_input", conv_input),
)}  # fmt: skip
