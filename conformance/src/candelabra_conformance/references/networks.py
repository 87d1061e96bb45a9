"""Convolution, pooling and normalisation by their definitions, window by window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]


def _spans(at: Ints, counts: Ints, stride: Ints, dilation: Ints) -> tuple[Any, ...]:
    """Return slices of the padded input's last dims: the elements that kernel element ``at`` reads, for all windows."""
    steps = zip(at, counts, stride, dilation, strict=True)
    return ..., *(slice(k * d, k * d + (n - 1) * s + 1 if n else k * d, s) for k, n, s, d in steps)


def _padded(x: Array, padding: Ints, behind: Ints, fill: Any = 0) -> Array:
    """Pad the last dims with a number. ``behind`` is additional padding at the end."""
    lead = x.ndim - len(padding)
    widths = [(0, 0)] * lead + [(p, p + b) for p, b in zip(padding, behind, strict=True)]
    return np.pad(x, widths, constant_values=fill)


def _grouped(x: Array, axis: int, groups: int) -> Array:
    shape = x.shape
    return x.reshape(*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])


def _window_counts(size: Ints, kernel: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Ints:
    along = zip(size, kernel, stride, padding, dilation, strict=True)
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in along)


@reference("conv", extended=True)
def conv(
    x: Array, weight: Array, bias: Array | None, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    """Add the contribution of each element of the kernel to all windows."""
    kernel = weight.shape[2:]
    counts = _window_counts(x.shape[2:], kernel, stride, padding, dilation)
    padded = _grouped(_padded(x, padding, (0,) * len(kernel)), 1, groups)
    by_group = _grouped(weight, 0, groups)
    out = np.zeros((x.shape[0], groups, weight.shape[0] // groups, *counts), x.dtype)
    for at in np.ndindex(*kernel):
        part = padded[_spans(at, counts, stride, dilation)]
        out += np.einsum("ngc...,goc->ngo...", part, by_group[(..., *at)])
    flat = out.reshape(x.shape[0], weight.shape[0], *counts)
    return flat if bias is None else flat + bias.reshape(-1, *[1] * len(kernel))


@reference("conv_input", extended=True)
def conv_input(
    output: Array, weight: Array, shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    """Add the contribution of each element of the kernel to the elements of the padded input that it read."""
    kernel, counts = weight.shape[2:], output.shape[2:]
    spatial = tuple(n + 2 * p for n, p in zip(shape[2:], padding, strict=True))
    back = np.zeros((shape[0], groups, shape[1] // groups, *spatial), output.dtype)
    grouped, by_group = _grouped(output, 1, groups), _grouped(weight, 0, groups)
    for at in np.ndindex(*kernel):
        share = np.einsum("ngo...,goc->ngc...", grouped, by_group[(..., *at)])
        back[_spans(at, counts, stride, dilation)] += share
    inner: Any = (..., *(slice(p, p + n) for n, p in zip(shape[2:], padding, strict=True)))
    return np.asarray(back.reshape(*shape[:2], *spatial)[inner])


@reference("conv_tbc", extended=True)
def conv_tbc(x: Array, weight: Array, bias: Array, pad: int = 0) -> Array:
    """Multiply each window of steps by the matrices of the kernel."""
    x = np.pad(x, [(max(pad, 0),) * 2, (0, 0), (0, 0)])[max(-pad, 0) : len(x) + pad + max(pad, 0)]
    windows = [x[i : i + len(weight)] for i in range(len(x) - len(weight) + 1)]
    products = [np.einsum("kni,kio->no", window, weight) for window in windows]
    return np.stack(products) + bias if products else np.zeros((0, x.shape[1], weight.shape[2]), x.dtype)


@reference("conv_weight", extended=True)
def conv_weight(
    x: Array, output: Array, shape: Ints, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Array:
    """Sum over all windows for each element of the kernel."""
    kernel, counts = shape[2:], output.shape[2:]
    padded = _grouped(_padded(x, padding, (0,) * len(kernel)), 1, groups)
    grouped = _grouped(output, 1, groups)
    out = np.zeros((groups, shape[0] // groups, *shape[1:]), x.dtype)
    for at in np.ndindex(*kernel):
        part = padded[_spans(at, counts, stride, dilation)]
        n, g, c = part.shape[:3]
        count = int(np.prod(counts))
        flat = part.reshape(n, g, c, count), grouped.reshape(n, g, grouped.shape[2], count)
        out[(..., *at)] = np.einsum("ngcp,ngop->goc", *flat)
    return out.reshape(shape)


def _windows(x: Array, window: Ints, stride: Ints, padding: Ints, dilation: Ints, counts: Ints) -> Iterator[Any]:
    """Yield each window, with the flat index of each input element that it covers."""
    spatial = x.shape[x.ndim - len(window) :]
    for window_index in np.ndindex(*counts):
        seen = []
        for at in np.ndindex(*window):
            along = zip(window_index, at, stride, padding, dilation, strict=True)
            where = tuple(i * s - p + k * d for i, k, s, p, d in along)
            if all(0 <= w < n for w, n in zip(where, spatial, strict=True)):
                seen.append(int(np.ravel_multi_index(where, spatial)))
        yield window_index, seen


def _planes(x: Array, rank: int) -> Array:
    return x.reshape(-1, int(np.prod(x.shape[x.ndim - rank :])))


def _largest(rows: Array) -> Array:
    """Return the index of the largest in each row: NumPy's first one, or the last NaN."""
    strange = np.isnan(rows) if rows.dtype.kind == "f" else np.zeros(rows.shape, bool)
    last = rows.shape[1] - 1 - np.argmax(strange[:, ::-1], axis=1)
    return np.asarray(np.where(strange.any(axis=1), last, np.argmax(rows, axis=1)))


@reference("max_pool")
def max_pool(x: Array, window: Ints, stride: Ints, padding: Ints, dilation: Ints, counts: Ints) -> Any:
    """Return the first of the largest in each window, or its last NaN."""
    lead = x.shape[: x.ndim - len(window)]
    planes = _planes(x, len(window)) if x.size else x.reshape(0, 1)
    values = np.empty((len(planes), *counts), x.dtype)
    indices = np.empty((len(planes), *counts), np.int64)
    for window_index, seen in _windows(x, window, stride, padding, dilation, counts):
        if len(planes):
            best = np.array(seen)[_largest(planes[:, seen])]
            indices[(slice(None), *window_index)] = best
            values[(slice(None), *window_index)] = planes[np.arange(len(planes)), best]
    return values.reshape(*lead, *counts), indices.reshape(*lead, *counts)


@reference("max_pool_values")
def max_pool_values(x: Array, window: Ints, stride: Ints, padding: Ints, dilation: Ints, counts: Ints) -> Any:
    """Return the values only."""
    return max_pool(x, window, stride, padding, dilation, counts)[0]


@reference("sum_pool", extended=True)
def sum_pool(x: Array, window: Ints, stride: Ints, padding: Ints, dilation: Ints, counts: Ints) -> Any:
    """Return the sum of each window."""
    lead = x.shape[: x.ndim - len(window)]
    planes = _planes(x, len(window)) if x.size else x.reshape(0, 1)
    out = np.zeros((len(planes), *counts), x.dtype)
    for window_index, seen in _windows(x, window, stride, padding, dilation, counts):
        if len(planes):
            out[(slice(None), *window_index)] = planes[:, seen].sum(1, dtype=x.dtype)
    return out.reshape(*lead, *counts)


@reference("sum_pool_adjoint", extended=True)
def sum_pool_adjoint(output: Array, shape: Ints, window: Ints, stride: Ints, padding: Ints, dilation: Ints) -> Any:
    """Add each window's value to each of its elements."""
    rank = len(window)
    counts = output.shape[output.ndim - rank :]
    flat = output.reshape(-1, *counts) if output.size else output.reshape(0, *counts)
    back = np.zeros(shape, output.dtype)
    planes = back.reshape(len(flat), -1) if back.size else back
    for window_index, seen in _windows(back, window, stride, padding, dilation, counts):
        if len(flat):
            planes[:, seen] += flat[(slice(None), *window_index)][:, None]
    return back


def _mean(x: Array, dims: Ints) -> Any:
    count = int(np.prod([x.shape[d] for d in dims]))
    return np.sum(x, tuple(dims), keepdims=True) / x.dtype.type(count)


@reference("normalize", extended=True)
def normalize(x: Array, weight: Array | None, bias: Array | None, dims: Ints, eps: float) -> Any:
    """Subtract the mean, divide by the standard deviation, apply weight and bias, and return the two statistics too."""
    mean = _mean(x, dims)
    rstd = 1 / np.sqrt(_mean((x - mean) ** 2, dims) + eps)
    values = (x - mean) * rstd
    values = values if weight is None else values * weight
    return (values if bias is None else values + bias), mean, rstd


@reference("normalize_backward", extended=True)
def normalize_backward(grad: Array, x: Array, mean: Array, rstd: Array, weight: Array | None, dims: Ints) -> Any:
    """Subtract from the gradient its mean and its projection onto the normalised values."""
    scaled = grad if weight is None else grad * weight
    along = (x - mean) * rstd
    return rstd * (scaled - _mean(scaled, dims) - along * _mean(scaled * along, dims))


@reference("normalize_along", extended=True)
def normalize_along(tangent: Array, x: Array, mean: Array, rstd: Array, dims: Ints) -> Any:
    """Subtract from the tangent its mean and its projection onto the normalised values, and return these two."""
    along = (x - mean) * rstd
    center, projection = _mean(tangent, dims), _mean(tangent * along, dims)
    return rstd * (tangent - center - along * projection), center, projection


@reference("normalize_jointly", extended=True)
def normalize_jointly(
    tangent: Array, x: Array, weight: Array | None, bias: Array | None, dims: Ints, eps: float
) -> Any:
    """Return the results and their derivatives: that of the reciprocal deviation is ``-rstd³ mean(t (x - mean))``."""
    values, mean, rstd = normalize(x, weight, bias, dims, eps)
    slope, center, projection = normalize_along(tangent, x, mean, rstd, dims)
    scaled = slope if weight is None else slope * weight
    return values, mean, rstd, scaled, center, -(rstd**2) * projection


@reference("normalize_parameters_backward", extended=True)
def normalize_parameters_backward(grad: Array, x: Array, mean: Array, rstd: Array, dims: Ints, keepdim: bool) -> Any:
    """Sum the gradient times the normalised values, and the gradient alone."""
    over = tuple(dims)
    return np.sum(grad * (x - mean) * rstd, over, keepdims=keepdim), np.sum(grad, over, keepdims=keepdim)
