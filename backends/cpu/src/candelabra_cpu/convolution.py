"""Convolution as im2col and GEMM.

The patches are a strided view of the padded input. A chunk of images at a time is copied into a buffer, which is reused
for the next chunk: it stays in the cache, and its pages are mapped once. GEMM writes directly into the result.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from candelabra_arrayapi.network import conv_output_size, kernel_offsets, window
from numpy.lib.stride_tricks import as_strided

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.parallel import parallel_for
from candelabra_cpu.precision import in_float32

Ints = tuple[int, ...]
CHUNK = 1 << 19
"""Elements of the im2col buffer: 2 MB of float32, about the size of a core's cache."""
FEW = 256
"""With fewer output positions per image, one GEMM for all images of a chunk is faster than one for each."""


def padded(x: Any, before: Ints, after: Ints, value: Any = 0) -> Any:
    """Pad the last dims of ``x`` with ``value``; returns ``x`` itself if there is no padding."""
    if not any(before) and not any(after):
        return x
    lead = x.ndim - len(before)
    sizes = [b + n + a for b, n, a in zip(before, x.shape[lead:], after)]
    out: Any = (
        np.full((*x.shape[:lead], *sizes), value, x.dtype) if value else np.zeros((*x.shape[:lead], *sizes), x.dtype)
    )
    out[(..., *[slice(b, b + n) for b, n in zip(before, x.shape[lead:])])] = x
    return out


def _patches(x: Any, kernel: Ints, stride: Ints, dilation: Ints, output: Ints) -> Any:
    """Return the patch of every output position, as a view of shape (N, C, *kernel, *output)."""
    steps = x.strides[2:]
    inner = [s * d for s, d in zip(steps, dilation)]
    outer = [s * t for s, t in zip(steps, stride)]
    return as_strided(x, (*x.shape[:2], *kernel, *output), (*x.strides[:2], *inner, *outer), writeable=False)


class Im2col:
    """Iterates over the patches of a batch as matrices.

    An iteration yields ``(start, stop, matrices)`` for a chunk of images. The matrices have the shape (images, groups,
    C / groups * kernel, output positions), or with ``joined`` (groups, C / groups * kernel, images * output positions).
    """

    def __init__(
        self,
        x: Any,
        kernel: Ints,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        groups: int,
        output: Ints,
        joined: bool,
    ) -> None:
        self.count, self.groups, self.joined = x.shape[0], groups, joined
        self.rows, self.columns = x.shape[1] // groups * prod(kernel), prod(output)
        self.size = max(1, CHUNK // max(groups * self.rows * self.columns, 1))
        self.direct = None
        if prod(kernel) == 1 and prod(stride) == 1 and not any(padding) and not joined:
            self.direct = np.ascontiguousarray(x).reshape(self.count, groups, self.rows, self.columns)
            return
        self.view = _patches(padded(x, padding, padding), kernel, stride, dilation, output)
        if joined:
            self.view = np.moveaxis(self.view, 0, 1 + len(kernel))
        self.buffer = np.empty(groups * self.rows * min(self.size, self.count) * self.columns, x.dtype)

    def __iter__(self) -> Any:
        for start in range(0, self.count, self.size):
            stop = min(start + self.size, self.count)
            if self.direct is not None:
                yield start, stop, self.direct[start:stop]
                continue
            images = stop - start
            part = self.view[start:stop]
            shape: Ints = (images, self.groups, self.rows, self.columns)
            if self.joined:
                rank = (self.view.ndim - 2) // 2
                part = self.view[(slice(None),) * (1 + rank) + (slice(start, stop),)]
                shape = self.groups, self.rows, images * self.columns
            chunk = self.buffer[: prod(shape)]
            np.copyto(chunk.reshape(part.shape), part)
            yield start, stop, chunk.reshape(shape)


def _joined(y: Any, groups: int) -> Any:
    """Return (N, C, *output) as matrices (groups, C / groups, N * output positions)."""
    count, channels, positions = y.shape[0], y.shape[1], prod(y.shape[2:])
    first = y.reshape(count, channels, positions).swapaxes(0, 1)
    return np.ascontiguousarray(first).reshape(groups, channels // groups, count * positions)


def _use_flat_images(w: Any, stride: Ints, padded_size: Ints, output: Ints) -> bool:
    """Whether :func:`_conv_flat_images` is faster although it discards some results and copies the others again."""
    wasteful = 2 * prod(padded_size[1:]) > 3 * prod(output[1:])
    unit = max(stride) == 1 and prod(w.shape[2:]) > 1
    return unit and prod(output) >= FEW and not wasteful and prod(w.shape[1:]) >= w.shape[0]


def _conv_flat_images(x: Any, w: Any, b: Any, out: Any, padding: Ints, dilation: Ints, groups: int) -> None:
    """Convolve at stride 1 over flattened padded images.

    At stride 1, a position of the kernel reads the flattened padded image from an offset on, which is one long run that
    is fast to copy. The results between the end of one row and the start of the next are discarded.
    """
    count, (lead, *rest), kernel = x.shape[0], out.shape[2:], w.shape[2:]
    sizes = [n + 2 * p for n, p in zip(x.shape[2:], padding)]
    steps = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
    run, plane = lead * steps[0], prod(sizes)
    tail = sum(s * d * (k - 1) for s, d, k in zip(steps[1:], dilation[1:], kernel[1:]))
    rows = x.shape[1] // groups * prod(kernel)
    images = min(max(1, CHUNK // max(groups * rows * run, 1)), count)
    image = np.zeros(images * x.shape[1] * plane + tail, x.dtype)
    padded_images: Any = image[: image.size - tail].reshape(images, x.shape[1], *sizes)
    inside = padded_images[(..., *[slice(p, p + n) for p, n in zip(padding, x.shape[2:])])]
    item = x.itemsize
    offsets = [s * d * item for s, d in zip(steps, dilation)]
    view = as_strided(
        image, (images, x.shape[1], *kernel, run), (x.shape[1] * plane * item, plane * item, *offsets, item)
    )
    columns = np.empty(view.shape, x.dtype)
    products: Any = np.empty((images, groups, w.shape[0] // groups, run), x.dtype)
    valid = products.reshape(images, w.shape[0], lead, *sizes[1:])[(..., *[slice(0, n) for n in rest])]
    filters = w.reshape(groups, w.shape[0] // groups, rows)
    bias = None if b is None else b.reshape(-1, *[1] * len(kernel))
    for start in range(0, count, images):
        n = min(images, count - start)
        np.copyto(inside[:n], x[start : start + n])
        np.copyto(columns[:n], view[:n])
        np.matmul(filters, columns[:n].reshape(n, groups, rows, run), out=products[:n])
        if bias is None:
            np.copyto(out[start : start + n], valid[:n])
        else:
            np.add(valid[:n], bias, out=out[start : start + n])


def _check_sizes(x: Any, w: Any, output: Ints, groups: int) -> None:
    # The core reports which argument is wrong.
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups or any(n < 1 for n in output):
        raise ValueError(f"an input of shape {x.shape} does not fit a weight of shape {w.shape} in {groups} groups")


def conv(x: Any, w: Any, b: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    """The kernel of ``conv``."""
    kernel = w.shape[2:]
    output = conv_output_size(x.shape[2:], kernel, stride, padding, dilation)
    _check_sizes(x, w, output, groups)
    out = np.empty((x.shape[0], w.shape[0], *output), x.dtype)
    padded_size = tuple(n + 2 * p for n, p in zip(x.shape[2:], padding))
    if not out.size:
        return out
    flat_images = x.size and _use_flat_images(w, stride, padded_size, output)
    filters = w.reshape(groups, w.shape[0] // groups, w.shape[1] * prod(kernel))
    grouped = out.reshape(x.shape[0], groups, w.shape[0] // groups, prod(output))
    bias = None if b is None else b.reshape(groups, -1, 1)

    def convolve(first: int, last: int) -> None:
        if flat_images:
            _conv_flat_images(x[first:last], w, b, out[first:last], padding, dilation, groups)
            return
        few = prod(output) < FEW
        for start, stop, columns in Im2col(x[first:last], kernel, stride, padding, dilation, groups, output, few):
            target = grouped[first + start : first + stop]
            if few:
                products = np.matmul(filters, columns).reshape(groups, -1, stop - start, prod(output))
                np.copyto(target, np.moveaxis(products, 2, 0))
            else:
                np.matmul(filters, columns, out=target)
            if bias is not None:
                np.add(target, bias, out=target)

    parallel_for(x.shape[0], out.size * prod(w.shape[1:]) // 8, convolve)
    return out


def conv_weight(x: Any, y: Any, shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    """The kernel of ``conv_weight``: the products of gradient and patches, summed over the images."""
    kernel, output = tuple(shape[2:]), y.shape[2:]
    few = prod(output) < FEW

    def partial_sum(first: int, last: int) -> Any:
        out = np.zeros((groups, shape[0] // groups, shape[1] * prod(kernel)), x.dtype)
        for start, stop, columns in Im2col(x[first:last], kernel, stride, padding, dilation, groups, output, few):
            part = y[first + start : first + stop]
            if few:
                out += np.matmul(_joined(part, groups), columns.swapaxes(-1, -2))
            else:
                grad = np.ascontiguousarray(part).reshape(stop - start, groups, -1, prod(output))
                out += np.matmul(grad, columns.swapaxes(-1, -2)).sum(0)
        return out

    return sum(parallel_for(x.shape[0], y.size * prod(shape[1:]) // 8, partial_sum)).reshape(shape)


def conv_input(y: Any, w: Any, shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    """The kernel of ``conv_input``: a convolution at stride 1, otherwise GEMM and col2im."""
    kernel, output = w.shape[2:], y.shape[2:]
    count, rows, columns = shape[0], shape[1] // groups * prod(kernel), prod(output)
    extent = [d * (k - 1) for k, d in zip(kernel, dilation)]
    complete = all(m == n + 2 * p - e and p <= e for m, n, p, e in zip(output, shape[2:], padding, extent))
    if complete and prod(stride) == 1 and y.shape[1] <= 2 * shape[1]:
        return _conv_flipped(y, w, padding, dilation, groups)
    sizes = [
        max(n + 2 * p, (m - 1) * s + d * (k - 1) + 1)
        for n, p, m, s, d, k in zip(shape[2:], padding, output, stride, dilation, kernel)
    ]
    filters = w.reshape(groups, w.shape[0] // groups, rows).swapaxes(-1, -2)
    inside = tuple(slice(p, p + n) for p, n in zip(padding, shape[2:]))
    result = np.empty(shape, y.dtype)

    def convolve(first: int, last: int) -> None:
        out: Any = np.zeros((last - first, shape[1], *sizes), y.dtype)
        size = max(1, CHUNK // max(groups * rows * columns, 1))
        buffer = np.empty(groups * rows * min(size, last - first) * columns, y.dtype)
        for start in range(first, last, size):
            stop = min(start + size, last)
            products = buffer[: groups * rows * (stop - start) * columns].reshape(groups, rows, -1)
            np.matmul(filters, _joined(y[start:stop], groups), out=products)
            patches: Any = np.moveaxis(products.reshape(shape[1], *kernel, stop - start, *output), 1 + len(kernel), 0)
            for offset in kernel_offsets(kernel):
                target = out[start - first : stop - first][window(offset, stride, dilation, output)]
                np.add(target, patches[(slice(None), slice(None), *offset)], out=target)
        result[first:last] = out[(..., *inside)]

    parallel_for(count, y.size * prod(w.shape[1:]) // 8, convolve)
    return result


def _conv_flipped(y: Any, w: Any, padding: Ints, dilation: Ints, groups: int) -> Any:
    """Convolve at stride 1 with the flipped kernel, whose input and output channels are exchanged."""
    rank, kernel = w.ndim - 2, w.shape[2:]
    o, c = w.shape[:2]
    flipped = w[(..., *[slice(None, None, -1)] * rank)].reshape(groups, o // groups, c, *kernel).swapaxes(1, 2)
    flipped = np.ascontiguousarray(flipped).reshape(groups * c, o // groups, *kernel)
    full_padding = tuple(d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding))
    return conv(y, flipped, None, (1,) * rank, full_padding, dilation, groups)


KERNELS: dict[str, Any] = {name: numpy_kernel(in_float32(f)) for name, f in (
    ("conv", conv), ("conv_weight", conv_weight), ("conv_input", conv_input),
)}  # fmt: skip
