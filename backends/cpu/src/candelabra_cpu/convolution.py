"""Convolution on NumPy: windows by strides, one copy of a few images at a time into a small buffer, and BLAS.

The buffer is reused from chunk to chunk, so it stays in the cache and the pages behind it are mapped once. For each
image a GEMM writes straight into the result; nothing is transposed.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from candelabra_arrayapi.network import conv_output_size, kernel_offsets, window
from numpy.lib.stride_tricks import as_strided

from candelabra_cpu.halves import widened
from candelabra_cpu.parallel import split
from candelabra_cpu.quiet import quiet

Ints = tuple[int, ...]
CHUNK = 1 << 19
"""Elements of the buffer of windows: 2 MB of float32, about what a core's cache holds."""


def padded(x: Any, before: Ints, after: Ints, value: Any = 0) -> Any:
    """The last dims with ``value`` put round, in C order; ``x`` itself where there is nothing to add."""
    if not any(before) and not any(after):
        return x
    lead = x.ndim - len(before)
    sizes = [b + n + a for b, n, a in zip(before, x.shape[lead:], after)]
    out: Any = (
        np.full((*x.shape[:lead], *sizes), value, x.dtype) if value else np.zeros((*x.shape[:lead], *sizes), x.dtype)
    )
    out[(..., *[slice(b, b + n) for b, n in zip(before, x.shape[lead:])])] = x
    return out


def _windows(x: Any, kernel: Ints, stride: Ints, dilation: Ints, places: Ints) -> Any:
    """What each place sees, as a view (N, C, *kernel, *places)."""
    steps = x.strides[2:]
    inner = [s * d for s, d in zip(steps, dilation)]
    outer = [s * t for s, t in zip(steps, stride)]
    return as_strided(x, (*x.shape[:2], *kernel, *places), (*x.strides[:2], *inner, *outer), writeable=False)


class Columns:
    """The windows of a batch as matrices (groups, C / groups * kernel, places), a chunk of images at a time."""

    def __init__(
        self, x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int, places: Ints
    ) -> None:
        self.count = x.shape[0]
        rows, columns = x.shape[1] // groups * prod(kernel), prod(places)
        self.size = max(1, CHUNK // max(groups * rows * columns, 1))
        self.direct = None
        if prod(kernel) == 1 and prod(stride) == 1 and not any(padding):
            self.direct = np.ascontiguousarray(x).reshape(self.count, groups, rows, columns)
            return
        self.view = _windows(padded(x, padding, padding), kernel, stride, dilation, places)
        images = min(self.size, self.count)
        self.buffer = np.empty((images, *self.view.shape[1:]), x.dtype)
        self.matrices = self.buffer.reshape(images, groups, rows, columns)

    def __iter__(self) -> Any:
        for start in range(0, self.count, self.size):
            stop = min(start + self.size, self.count)
            if self.direct is not None:
                yield start, stop, self.direct[start:stop]
            else:
                np.copyto(self.buffer[: stop - start], self.view[start:stop])
                yield start, stop, self.matrices[: stop - start]


def _long_runs(w: Any, stride: Ints, framed: Ints, places: Ints) -> bool:
    """Whether :func:`_conv_in_runs` pays: it computes what lies between the rows, too, and copies the result again."""
    narrow = 2 * prod(framed[1:]) > 3 * prod(places[1:])
    return max(stride) == 1 and prod(w.shape[2:]) > 1 and not narrow and prod(w.shape[1:]) >= w.shape[0]


def _conv_in_runs(x: Any, w: Any, b: Any, out: Any, padding: Ints, dilation: Ints, groups: int) -> None:
    """At stride 1 a kernel's position sees the padded image, flattened, from an offset on: one long run, fast to copy.

    The results between the end of one row and the start of the next are waste, and are left out when the bias is added.
    """
    count, (lead, *rest), kernel = x.shape[0], out.shape[2:], w.shape[2:]
    sizes = [n + 2 * p for n, p in zip(x.shape[2:], padding)]
    steps = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
    run, plane = lead * steps[0], prod(sizes)
    tail = sum(s * d * (k - 1) for s, d, k in zip(steps[1:], dilation[1:], kernel[1:]))
    rows = x.shape[1] // groups * prod(kernel)
    images = min(max(1, CHUNK // max(groups * rows * run, 1)), count)
    image = np.zeros(images * x.shape[1] * plane + tail, x.dtype)
    framed: Any = image[: image.size - tail].reshape(images, x.shape[1], *sizes)
    inside = framed[(..., *[slice(p, p + n) for p, n in zip(padding, x.shape[2:])])]
    item = x.itemsize
    offsets = [s * d * item for s, d in zip(steps, dilation)]
    view = as_strided(
        image, (images, x.shape[1], *kernel, run), (x.shape[1] * plane * item, plane * item, *offsets, item)
    )
    columns = np.empty(view.shape, x.dtype)
    wide: Any = np.empty((images, groups, w.shape[0] // groups, run), x.dtype)
    kept = wide.reshape(images, w.shape[0], lead, *sizes[1:])[(..., *[slice(0, n) for n in rest])]
    flat = w.reshape(groups, w.shape[0] // groups, rows)
    bias = None if b is None else b.reshape(-1, *[1] * len(kernel))
    for start in range(0, count, images):
        n = min(images, count - start)
        np.copyto(inside[:n], x[start : start + n])
        np.copyto(columns[:n], view[:n])
        np.matmul(flat, columns[:n].reshape(n, groups, rows, run), out=wide[:n])
        if bias is None:
            np.copyto(out[start : start + n], kept[:n])
        else:
            np.add(kept[:n], bias, out=out[start : start + n])


def _fits(x: Any, w: Any, places: Ints, groups: int) -> None:
    # The core says what is wrong in the user's words.
    if x.shape[1] != w.shape[1] * groups or w.shape[0] % groups or any(p < 1 for p in places):
        raise ValueError("sizes do not fit")


def conv(x: Any, w: Any, b: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    """The kernel of ``conv``."""
    kernel = w.shape[2:]
    places = conv_output_size(x.shape[2:], kernel, stride, padding, dilation)
    _fits(x, w, places, groups)
    out = np.empty((x.shape[0], w.shape[0], *places), x.dtype)
    framed = tuple(n + 2 * p for n, p in zip(x.shape[2:], padding))
    if not out.size:
        return out
    runs = x.size and _long_runs(w, stride, framed, places)
    flat = w.reshape(groups, w.shape[0] // groups, w.shape[1] * prod(kernel))
    into = out.reshape(x.shape[0], groups, w.shape[0] // groups, prod(places))
    bias = None if b is None else b.reshape(groups, -1, 1)

    def part(first: int, last: int) -> None:
        if runs:
            _conv_in_runs(x[first:last], w, b, out[first:last], padding, dilation, groups)
            return
        for start, stop, columns in Columns(x[first:last], kernel, stride, padding, dilation, groups, places):
            target = into[first + start : first + stop]
            np.matmul(flat, columns, out=target)
            if bias is not None:
                np.add(target, bias, out=target)

    split(x.shape[0], out.size * prod(w.shape[1:]) // 8, part)
    return out


def conv_weight(x: Any, y: Any, shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    """The kernel of ``conv_weight``: per image the product of the gradient and the windows, summed."""
    kernel, places = tuple(shape[2:]), y.shape[2:]
    flat = np.ascontiguousarray(y).reshape(y.shape[0], groups, y.shape[1] // groups, prod(places))

    def part(first: int, last: int) -> Any:
        out = np.zeros((groups, shape[0] // groups, shape[1] * prod(kernel)), x.dtype)
        for start, stop, columns in Columns(x[first:last], kernel, stride, padding, dilation, groups, places):
            out += np.matmul(flat[first + start : first + stop], columns.swapaxes(-1, -2)).sum(0)
        return out

    return sum(split(x.shape[0], y.size * prod(shape[1:]) // 8, part)).reshape(shape)


def conv_input(y: Any, w: Any, shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    """The kernel of ``conv_input``: a convolution at stride 1, else windows computed and added where they belong."""
    kernel, places = w.shape[2:], y.shape[2:]
    count, rows, columns = shape[0], shape[1] // groups * prod(kernel), prod(places)
    reach = [d * (k - 1) for k, d in zip(kernel, dilation)]
    whole = all(m == n + 2 * p - r and p <= r for m, n, p, r in zip(places, shape[2:], padding, reach))
    if whole and prod(stride) == 1 and y.shape[1] <= 2 * shape[1]:
        return _turned(y, w, padding, dilation, groups)
    sizes = [
        max(n + 2 * p, (m - 1) * s + d * (k - 1) + 1)
        for n, p, m, s, d, k in zip(shape[2:], padding, places, stride, dilation, kernel)
    ]
    flat = w.reshape(groups, w.shape[0] // groups, rows).swapaxes(-1, -2)
    given = np.ascontiguousarray(y).reshape(count, groups, y.shape[1] // groups, columns)
    inside = tuple(slice(p, p + n) for p, n in zip(padding, shape[2:]))
    result = np.empty(shape, y.dtype)

    def part(first: int, last: int) -> None:
        out: Any = np.zeros((last - first, shape[1], *sizes), y.dtype)
        size = max(1, CHUNK // max(groups * rows * columns, 1))
        buffer = np.empty((min(size, last - first), groups, rows, columns), y.dtype)
        for start in range(first, last, size):
            stop = min(start + size, last)
            products = buffer[: stop - start]
            np.matmul(flat, given[start:stop], out=products)
            seen: Any = products.reshape(stop - start, shape[1], *kernel, *places)
            for position in kernel_offsets(kernel):
                target = out[start - first : stop - first][window(position, stride, dilation, places)]
                np.add(target, seen[(slice(None), slice(None), *position)], out=target)
        result[first:last] = out[(..., *inside)]

    split(count, y.size * prod(w.shape[1:]) // 8, part)
    return result


def _turned(y: Any, w: Any, padding: Ints, dilation: Ints, groups: int) -> Any:
    """At stride 1: the convolution with the kernel turned round and its channels swapped."""
    rank, kernel = w.ndim - 2, w.shape[2:]
    o, c = w.shape[:2]
    turned = w[(..., *[slice(None, None, -1)] * rank)].reshape(groups, o // groups, c, *kernel).swapaxes(1, 2)
    turned = np.ascontiguousarray(turned).reshape(groups * c, o // groups, *kernel)
    around = tuple(d * (k - 1) - p for d, k, p in zip(dilation, kernel, padding))
    return conv(y, turned, None, (1,) * rank, around, dilation, groups)


KERNELS: dict[str, Any] = {name: quiet(widened(f)) for name, f in (
    ("conv", conv), ("conv_weight", conv_weight), ("conv_input", conv_input),
)}  # fmt: skip
