"""Convolution, pooling and lookup over any namespace: windows are made by slicing once per position in the kernel.

Nothing here writes in place or needs strides, so it runs on arrays that are immutable, too. The transposed convolution
is the convolution of its argument, spread out by the stride, with the kernel turned round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

Ints = tuple[int, ...]
Kernel = Callable[..., Any]


def positions(kernel: Ints) -> Iterator[Ints]:
    """Every position in a kernel, in C order."""
    return product(*(range(k) for k in kernel))


def count(sizes: Ints) -> int:
    """The product of sizes."""
    total = 1
    for size in sizes:
        total *= size
    return total


def window(position: Ints, stride: Ints, dilation: Ints, places: Ints) -> tuple[Any, ...]:
    """The index of what one position of a kernel sees of a padded input, over all places."""
    starts = [p * d for p, d in zip(position, dilation)]
    return (..., *[slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, places, stride)])


def places_of(sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    """How many places a kernel has, per dim."""
    each = zip(sizes, kernel, stride, padding, dilation)
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in each)


def kernels(xp: Any) -> dict[str, Kernel]:
    """The kernels over a namespace."""
    pad = _padding(xp)
    return {**_convolutions(xp, pad), **_max_pools(xp, pad), **_sum_pools(xp, pad), **_lookup(xp)}


def _padding(xp: Any) -> Kernel:
    def filled(x: Any, axis: int, size: int, value: Any) -> Any:
        """One value in the shape of ``x``, but for one size."""
        shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
        return xp.full(shape, value, dtype=x.dtype, device=x.device)

    def pad(x: Any, before: Ints, after: Ints, value: Any = 0) -> Any:
        """The last dims of ``x`` with ``value`` put round; negative sizes crop."""
        lead = x.ndim - len(before)
        cut = [slice(max(-b, 0), n - max(-a, 0)) for b, a, n in zip(before, after, x.shape[lead:])]
        if any(b < 0 or a < 0 for b, a in zip(before, after)):
            x = x[(..., *cut)]
        for axis, (b, a) in enumerate(zip(before, after), lead):
            parts = [x]
            if b > 0:
                parts.insert(0, filled(x, axis, b, value))
            if a > 0:
                parts.append(filled(x, axis, a, value))
            if len(parts) > 1:
                x = xp.concat(parts, axis=axis)
        return x

    return pad


def _spread(xp: Any, y: Any, stride: Ints) -> Any:
    """``stride - 1`` zeros between neighbours along the last dims."""
    for axis, step in enumerate(stride, y.ndim - len(stride)):
        if step > 1 and y.shape[axis]:
            n = y.shape[axis]
            y = xp.expand_dims(y, axis=axis + 1)
            gap = xp.zeros((*y.shape[: axis + 1], step - 1, *y.shape[axis + 2 :]), dtype=y.dtype, device=y.device)
            y = xp.concat([y, gap], axis=axis + 1)
            y = xp.reshape(y, (*y.shape[:axis], n * step, *y.shape[axis + 2 :]))
            y = y[(..., slice(0, (n - 1) * step + 1), *[slice(None)] * (y.ndim - axis - 1))]
    return y


def _convolutions(xp: Any, pad: Kernel) -> dict[str, Kernel]:
    def columns(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int, places: Ints) -> Any:
        """What each place sees, as (N, groups, C / groups * kernel, places)."""
        x = pad(x, padding, padding)
        parts = [x[window(p, stride, dilation, places)] for p in positions(kernel)]
        stacked = xp.stack(parts, axis=2)  # N, C, kernel, *places
        n, c = x.shape[:2]
        return xp.reshape(stacked, (n, groups, c // groups * count(kernel), count(places)))

    def conv(x: Any, w: Any, b: Any, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
        kernel = w.shape[2:]
        places = places_of(x.shape[2:], kernel, stride, padding, dilation)
        seen = columns(x, kernel, stride, padding, dilation, groups, places)
        flat = xp.reshape(w, (groups, w.shape[0] // groups, w.shape[1] * count(kernel)))
        out = xp.reshape(xp.matmul(flat, seen), (x.shape[0], w.shape[0], *places))
        return out if b is None else out + xp.reshape(b, (w.shape[0], *[1] * len(kernel)))

    def conv_input(y: Any, w: Any, shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
        rank, kernel = len(stride), w.shape[2:]
        y = _spread(xp, y, stride)
        reach = [d * (k - 1) for k, d in zip(kernel, dilation)]
        before = tuple(r - p for r, p in zip(reach, padding))
        after = tuple(n + r - b - m for n, r, b, m in zip(shape[2:], reach, before, y.shape[2:]))
        o, c = w.shape[:2]
        turned = xp.flip(w, axis=tuple(range(2, rank + 2)))
        turned = xp.reshape(turned, (groups, o // groups, c, *kernel))
        turned = xp.permute_dims(turned, (0, 2, 1, *range(3, rank + 3)))
        turned = xp.reshape(turned, (groups * c, o // groups, *kernel))
        none = (0,) * rank
        return conv(pad(y, before, after), turned, None, (1,) * rank, none, dilation, groups)

    def conv_weight(x: Any, y: Any, shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
        places = y.shape[2:]
        seen = columns(x, tuple(shape[2:]), stride, padding, dilation, groups, places)
        flat = xp.reshape(y, (y.shape[0], groups, y.shape[1] // groups, count(places)))
        summed = xp.sum(xp.matmul(flat, xp.matrix_transpose(seen)), axis=0)
        return xp.reshape(xp.astype(summed, x.dtype), shape)

    return {"conv": conv, "conv_input": conv_input, "conv_weight": conv_weight}


def overhang(sizes: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> Ints:
    """The padding behind: what the last windows need, in ceil mode more than the padding in front."""
    each = zip(sizes, kernel, stride, padding, dilation, places)
    return tuple(max(p, (n - 1) * s + d * (k - 1) + 1 - size - p) for size, k, s, p, d, n in each)


def _max_pools(xp: Any, pad: Kernel) -> dict[str, Kernel]:
    def lowest(x: Any) -> Any:
        return -xp.inf if xp.isdtype(x.dtype, "real floating") else xp.iinfo(x.dtype).min

    def max_pool(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> tuple[Any, Any]:
        sizes = x.shape[x.ndim - len(kernel) :]
        after = overhang(sizes, kernel, stride, padding, dilation, places)
        numbers = xp.reshape(xp.arange(count(sizes), dtype=xp.int64, device=x.device), sizes)
        numbers = pad(numbers, padding, after, -1)
        padded = pad(x, padding, after, lowest(x))
        best: Any = None
        found: Any = None
        for position in positions(kernel):
            index = window(position, stride, dilation, places)
            part, number = padded[index], numbers[index]
            if best is None:
                best, found = part, xp.broadcast_to(number, part.shape)
                continue
            # The first of equals stays, unless it is padding: an all -inf window still names a place inside.
            better = (part > best) | ((found < 0) & (number >= 0))
            if xp.isdtype(x.dtype, "real floating"):
                better = (better | xp.isnan(part)) & (number >= 0)
            else:
                better = better & (number >= 0)
            best, found = xp.where(better, part, best), xp.where(better, number, found)
        return xp.asarray(best, copy=True), xp.asarray(found, copy=True)

    def max_pool_values(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> Any:
        sizes = x.shape[x.ndim - len(kernel) :]
        padded = pad(x, padding, overhang(sizes, kernel, stride, padding, dilation, places), lowest(x))
        best = None
        for position in positions(kernel):
            part = padded[window(position, stride, dilation, places)]
            best = part if best is None else xp.maximum(best, part)
        return xp.asarray(best, copy=True) if count(kernel) == 1 else best

    return {"max_pool": max_pool, "max_pool_values": max_pool_values}


def _sum_pools(xp: Any, pad: Kernel) -> dict[str, Kernel]:
    def sum_pool(x: Any, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints, places: Ints) -> Any:
        sizes = x.shape[x.ndim - len(kernel) :]
        padded = pad(x, padding, overhang(sizes, kernel, stride, padding, dilation, places))
        total = None
        for position in positions(kernel):
            part = padded[window(position, stride, dilation, places)]
            total = part if total is None else total + part
        return xp.asarray(total, copy=True) if count(kernel) == 1 else total

    def sum_pool_adjoint(y: Any, shape: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Any:
        # One spatial dim after the other: the sum over a window is separable.
        rank = len(kernel)
        for i in range(rank):
            axis = y.ndim - rank + i
            y = xp.moveaxis(y, axis, -1)
            size = shape[len(shape) - rank + i]
            y = _spread(xp, y, (stride[i],))
            reach = dilation[i] * (kernel[i] - 1)
            before = reach - padding[i]
            y = pad(y, (before,), (size + reach - before - y.shape[-1],))
            y = sum_pool(y, (kernel[i],), (1,), (0,), (dilation[i],), (size,))
            y = xp.moveaxis(y, -1, axis)
        return xp.asarray(y, copy=True)

    return {"sum_pool": sum_pool, "sum_pool_adjoint": sum_pool_adjoint}


def _lookup(xp: Any) -> dict[str, Kernel]:
    def embedding(weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
        if weight.ndim != 2:
            raise ValueError("embedding needs a matrix")
        flat = xp.reshape(indices, (-1,))
        if flat.shape[0] and (int(xp.min(flat)) < 0 or int(xp.max(flat)) >= weight.shape[0]):
            raise IndexError("index out of range")
        return xp.reshape(xp.take(weight, flat, axis=0), (*indices.shape, weight.shape[1]))

    return {"embedding": embedding}
