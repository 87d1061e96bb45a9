"""Convolution, pooling and embedding for any namespace.

Each position of the kernel takes one strided slice of the padded input. No kernel writes in place or needs strides, so
immutable arrays work too. The input gradient of a convolution is the convolution of the dilated output gradient with
the flipped kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import inf, prod
from typing import Any

from candelabra_arrayapi.placement import same_device

Ints = tuple[int, ...]
Kernel = Callable[..., Any]


def kernel_offsets(kernel: Ints) -> Iterator[Ints]:
    """Iterate over the positions in a kernel of this size, in C order."""
    return product(*(range(k) for k in kernel))


def window(offset: Ints, stride: Ints, dilation: Ints, output_size: Ints) -> tuple[Any, ...]:
    """Return the index of the elements of a padded input that one position of the kernel reads, one for each output."""
    starts = [p * d for p, d in zip(offset, dilation)]
    return (..., *[slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, output_size, stride)])


def conv_output_size(sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    """Return the spatial sizes of the result of a convolution."""
    dims = zip(sizes, kernel, stride, padding, dilation)
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in dims)


def kernels(xp: Any, dtypes: Mapping[Any, Any]) -> dict[str, Kernel]:
    """Return the kernels over the namespace ``xp``; ``dtypes`` maps the dtypes of candelabra to those of ``xp``."""
    pad = _pad_function(xp)
    return {**_convolutions(xp, pad), **_max_pools(xp, pad), **_sum_pools(xp, dtypes, pad), **_embedding(xp)}


def _pad_function(xp: Any) -> Kernel:
    def filled(x: Any, axis: int, size: int, value: Any) -> Any:
        """Return an array of one value, with the shape of ``x`` except for the size of one axis."""
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        return xp.full(shape, value, dtype=x.dtype, **same_device(x))

    def pad(x: Any, before: Ints, after: Ints, value: Any = 0) -> Any:
        """Pad the last dims of ``x`` with ``value``; negative sizes crop."""
        lead = x.ndim - len(before)
        crop = [slice(max(-b, 0), n - max(-a, 0)) for b, a, n in zip(before, after, x.shape[lead:])]
        if any(b < 0 or a < 0 for b, a in zip(before, after)):
            x = x[(..., *crop)]
        for axis, (b, a) in enumerate(zip(before, after), lead):
            pieces = [x]
            if b > 0:
                pieces.insert(0, filled(x, axis, b, value))
            if a > 0:
                pieces.append(filled(x, axis, a, value))
            if len(pieces) > 1:
                x = xp.concat(pieces, axis=axis)
        return x

    return pad


def _dilate(xp: Any, y: Any, stride: Ints) -> Any:
    """Insert ``stride - 1`` zeros between adjacent elements along the last dims."""
    for axis, step in enumerate(stride, y.ndim - len(stride)):
        if step > 1 and y.shape[axis]:
            n = y.shape[axis]
            y = xp.expand_dims(y, axis=axis + 1)
            gap = xp.zeros((*y.shape[: axis + 1], step - 1, *y.shape[axis + 2 :]), dtype=y.dtype, **same_device(y))
            y = xp.concat([y, gap], axis=axis + 1)
            y = xp.reshape(y, (*y.shape[:axis], n * step, *y.shape[axis + 2 :]))
            y = y[(..., slice(0, (n - 1) * step + 1), *[slice(None)] * (y.ndim - axis - 1))]
    return y


def _convolutions(xp: Any, pad: Kernel) -> dict[str, Kernel]:
    def im2col(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int, output: Ints) -> Any:
        """Return the patch of every output position, of shape (N, groups, C / groups * kernel, output positions)."""
        x = pad(x, padding, padding)
        slices = [x[window(p, stride, dilation, output)] for p in kernel_offsets(kernel)]
        stacked = xp.stack(slices, axis=2)  # (N, C, kernel, *output)
        n, c = x.shape[:2]
        return xp.reshape(stacked, (n, groups, c // groups * prod(kernel), prod(output)))

    def conv(x: Any, w: Any, b: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
        output = conv_output_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
        if min(output) < 1:  # an output of no elements would be a result; the core says which size is wrong
            raise ValueError(f"a kernel of shape {w.shape} is larger than the padded input of shape {x.shape}")
        return products_with_patches(x, w, b, stride, padding, dilation, groups, output)

    def products_with_patches(
        x: Any, w: Any, b: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int, output: Ints
    ) -> Any:
        kernel = w.shape[2:]
        columns = im2col(x, kernel, stride, padding, dilation, groups, output)
        filters = xp.reshape(w, (groups, w.shape[0] // groups, w.shape[1] * prod(kernel)))
        out = xp.reshape(xp.matmul(filters, columns), (x.shape[0], w.shape[0], *output))
        return out if b is None else out + xp.reshape(b, (w.shape[0], *[1] * len(kernel)))

    def conv_input(y: Any, w: Any, shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
        rank, kernel = len(stride), w.shape[2:]
        y = _dilate(xp, y, stride)
        extent = [d * (k - 1) for k, d in zip(kernel, dilation)]
        before = tuple(e - p for e, p in zip(extent, padding))
        after = tuple(n + e - b - m for n, e, b, m in zip(shape[2:], extent, before, y.shape[2:]))
        o, c = w.shape[:2]
        flipped = xp.flip(w, axis=tuple(range(2, rank + 2)))
        flipped = xp.reshape(flipped, (groups, o // groups, c, *kernel))
        flipped = xp.permute_dims(flipped, (0, 2, 1, *range(3, rank + 3)))
        flipped = xp.reshape(flipped, (groups * c, o // groups, *kernel))
        no_padding = (0,) * rank
        y, sizes, ones = pad(y, before, after), tuple(shape[2:]), (1,) * rank
        return products_with_patches(y, flipped, None, ones, no_padding, dilation, groups, sizes)

    def conv_weight(x: Any, y: Any, shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
        output = y.shape[2:]
        columns = im2col(x, tuple(shape[2:]), stride, padding, dilation, groups, output)
        grad = xp.reshape(y, (y.shape[0], groups, y.shape[1] // groups, prod(output)))
        total = xp.sum(xp.matmul(grad, xp.matrix_transpose(columns)), axis=0)
        return xp.reshape(xp.astype(total, x.dtype), shape)

    return {"conv": conv, "conv_input": conv_input, "conv_weight": conv_weight}


def end_padding(sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output_size: Ints) -> Ints:
    """Return the padding at the end of each dim; with ``ceil_mode`` the last windows need more than ``padding``."""
    dims = zip(sizes, kernel, stride, padding, dilation, output_size)
    return tuple(max(p, (n - 1) * s + d * (k - 1) + 1 - size - p) for size, k, s, p, d, n in dims)


def _max_pools(xp: Any, pad: Kernel) -> dict[str, Kernel]:
    def lowest(x: Any) -> Any:
        return -inf if xp.isdtype(x.dtype, "real floating") else xp.iinfo(x.dtype).min

    def max_pool(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output: Ints) -> tuple[Any, Any]:
        sizes = x.shape[x.ndim - len(kernel) :]
        after = end_padding(sizes, kernel, stride, padding, dilation, output)
        flat_index = xp.reshape(xp.arange(prod(sizes), dtype=xp.int64, **same_device(x)), sizes)
        flat_index = pad(flat_index, padding, after, -1)
        padded = pad(x, padding, after, lowest(x))
        best: Any = None
        best_index: Any = None
        for offset in kernel_offsets(kernel):
            selection = window(offset, stride, dilation, output)
            values, index = padded[selection], flat_index[selection]
            if best is None:
                best, best_index = values, xp.broadcast_to(index, values.shape)
                continue
            # The first of equal elements is kept, unless it is padding: a window of -inf must yield a valid index.
            better = (values > best) | ((best_index < 0) & (index >= 0))
            if xp.isdtype(x.dtype, "real floating"):
                better = (better | xp.isnan(values)) & (index >= 0)
            else:
                better = better & (index >= 0)
            best, best_index = xp.where(better, values, best), xp.where(better, index, best_index)
        return xp.asarray(best, copy=True), xp.asarray(best_index, copy=True)

    def max_pool_values(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output: Ints) -> Any:
        sizes = x.shape[x.ndim - len(kernel) :]
        padded = pad(x, padding, end_padding(sizes, kernel, stride, padding, dilation, output), lowest(x))
        best = None
        for offset in kernel_offsets(kernel):
            values = padded[window(offset, stride, dilation, output)]
            best = values if best is None else xp.maximum(best, values)
        return xp.asarray(best, copy=True) if prod(kernel) == 1 else best

    return {"max_pool": max_pool, "max_pool_values": max_pool_values}


def _sum_pools(xp: Any, dtypes: Mapping[Any, Any], pad: Kernel) -> dict[str, Kernel]:
    float32 = next((held for d, held in dtypes.items() if d.name == "float32"), None)
    halves = [held for d, held in dtypes.items() if d.is_half and float32 is not None]

    def summed(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, output: Ints) -> Any:
        sizes = x.shape[x.ndim - len(kernel) :]
        padded = pad(x, padding, end_padding(sizes, kernel, stride, padding, dilation, output))
        total = None
        for offset in kernel_offsets(kernel):
            values = padded[window(offset, stride, dilation, output)]
            total = values if total is None else total + values
        return xp.asarray(total, copy=True) if prod(kernel) == 1 else total

    def sum_pool(x: Any, *geometry: Ints) -> Any:
        if any(x.dtype == half for half in halves):  # a sum in half precision loses every term below its last bit
            return xp.astype(summed(xp.astype(x, float32), *geometry), x.dtype)
        return summed(x, *geometry)

    def sum_pool_adjoint(gradient: Any, shape: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Any:
        # The sum over a window is separable, so the spatial dims are processed one after another.
        rank = len(kernel)
        y = xp.astype(gradient, float32) if any(gradient.dtype == half for half in halves) else gradient
        for i in range(rank):
            axis = y.ndim - rank + i
            y = xp.moveaxis(y, axis, -1)
            size = shape[len(shape) - rank + i]
            y = _dilate(xp, y, (stride[i],))
            extent = dilation[i] * (kernel[i] - 1)
            before = extent - padding[i]
            y = pad(y, (before,), (size + extent - before - y.shape[-1],))
            y = summed(y, (kernel[i],), (1,), (0,), (dilation[i],), (size,))
            y = xp.moveaxis(y, -1, axis)
        return xp.asarray(y, copy=True) if y.dtype == gradient.dtype else xp.astype(y, gradient.dtype)

    return {"sum_pool": sum_pool, "sum_pool_adjoint": sum_pool_adjoint}


def _embedding(xp: Any) -> dict[str, Kernel]:
    def embedding(weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
        if weight.ndim != 2:
            raise ValueError(f"embedding() expects a weight with 2 dims, got {weight.ndim}")
        flat = xp.reshape(indices, (-1,))
        if flat.shape[0] and (int(xp.min(flat)) < 0 or int(xp.max(flat)) >= weight.shape[0]):
            raise IndexError(f"index out of range for a dim of size {weight.shape[0]}")
        return xp.reshape(xp.take(weight, flat, axis=0), (*indices.shape, weight.shape[1]))

    return {"embedding": embedding}
