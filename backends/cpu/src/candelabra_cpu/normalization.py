"""Normalisation to mean 0 and variance 1, row by row for trailing dims."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from candelabra_cpu.half_precision import in_float32
from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.rows import for_each_block

Ints = tuple[int, ...]
SHORT = 16
"""Channels with fewer elements per image are not worth a row each."""


def _mean(x: Any, dims: Ints) -> Any:
    """Return the mean over ``dims`` with ``keepdim``: pairwise over trailing dims, in float64 over the others for
    accuracy.
    """
    trailing = tuple(d for d in dims if all(e in dims for e in range(d, x.ndim)))
    others = tuple(d for d in dims if d not in trailing)
    count = prod([x.shape[d] for d in dims])
    total = x.sum(trailing, keepdims=True) if trailing else x
    if others:
        total = total.sum(others, keepdims=True, dtype=np.float64)
    return (total / count).astype(x.dtype, copy=False)


def normalize(x: Any, w: Any, b: Any, dims: Ints, eps: float) -> tuple[Any, Any, Any]:
    """Normalise to mean 0 and variance 1 over ``dims``, then scale and shift.

    Also returns the mean and 1 / deviation.
    """
    kept_shape = tuple(1 if i in dims else s for i, s in enumerate(x.shape))
    trailing = dims == tuple(range(x.ndim - len(dims), x.ndim))
    full_size = all(t is None or t.shape == x.shape[x.ndim - len(dims) :] for t in (w, b))
    if not (trailing and full_size and x.size):
        mean = _mean(x, dims)
        out = x - mean
        rstd = 1 / np.sqrt(_mean(out * out, dims) + eps)
        out *= rstd
        out = out if w is None else np.multiply(out, w, out=out)
        return (out if b is None else np.add(out, b, out=out)), mean, rstd
    width = prod(x.shape[x.ndim - len(dims) :])
    rows = np.ascontiguousarray(x).reshape(-1, width)
    out, mean, rstd = np.empty_like(rows), np.empty(len(rows), x.dtype), np.empty(len(rows), x.dtype)

    def work(selection: slice) -> None:
        block, source = out[selection], rows[selection]
        np.mean(source, axis=1, out=mean[selection])
        np.subtract(source, mean[selection, None], out=block)
        variance = np.einsum("ij,ij->i", block, block) / width + eps
        np.divide(1, np.sqrt(variance, out=variance), out=rstd[selection])
        np.multiply(block, rstd[selection, None], out=block)
        if w is not None:
            np.multiply(block, w.reshape(-1), out=block)
        if b is not None:
            np.add(block, b.reshape(-1), out=block)

    for_each_block(rows.shape[0], rows.shape[1], work)
    return out.reshape(x.shape), mean.reshape(kept_shape), rstd.reshape(kept_shape)


def normalize_backward(g: Any, x: Any, mean: Any, rstd: Any, w: Any, dims: Ints) -> Any:
    """The gradient of :func:`normalize` with respect to its input."""
    trailing = dims == tuple(range(x.ndim - len(dims), x.ndim))
    if trailing and x.size and g.shape == x.shape and (w is None or w.shape == x.shape[x.ndim - len(dims) :]):
        return _rows_backward(g, x, mean, rstd, w, prod(x.shape[x.ndim - len(dims) :]))
    per_channel = x.ndim > 2 and dims == (0, *range(2, x.ndim)) and g.shape == x.shape
    if per_channel and prod(x.shape[2:]) >= SHORT and (w is None or w.shape == x.shape[1:2] + (1,) * (x.ndim - 2)):
        return _channels_backward(g, x, mean, rstd, w)
    z = x - mean
    z *= rstd
    h = g if w is None else g * w
    # h - mean(h) - z * mean(h z), all times rstd
    slope = _mean(h * z, dims)
    z *= slope
    out = np.subtract(h, z, out=z)
    out -= _mean(h, dims)
    out *= rstd
    return out


def _channels_backward(g: Any, x: Any, mean: Any, rstd: Any, w: Any) -> Any:
    """Compute :func:`normalize_backward` of a batch norm: sums of each channel, then the gradient, block by block.

    With c = x - mean and the weight w of the channel, it is ``w * rstd * (g - mean(g) - c * rstd**2 * mean(g * c))``.
    """
    count, channels = x.shape[:2]
    width = prod(x.shape[2:])
    grads, rows = np.ascontiguousarray(g).reshape(-1, width), np.ascontiguousarray(x).reshape(-1, width)
    out, sums = np.empty_like(rows), np.empty((2, len(rows)), x.dtype)

    def of_rows(values: Any) -> Any:
        return np.tile(values.astype(x.dtype, copy=False), count)[:, None]

    means = of_rows(mean.reshape(-1))

    def add_up(selection: slice) -> None:
        block = grads[selection]
        np.sum(block, 1, out=sums[0, selection])
        np.einsum("ij,ij->i", block, rows[selection] - means[selection], out=sums[1, selection])

    for_each_block(rows.shape[0], width, add_up)
    mean_g, mean_gc = sums.reshape(2, count, channels).sum(1, dtype=np.float64) / (count * width)
    deviation = rstd.reshape(-1).astype(np.float64)
    factor = deviation if w is None else deviation * w.reshape(-1)
    factors, shifts, slopes = of_rows(factor), of_rows(factor * mean_g), of_rows(factor * deviation**2 * mean_gc)

    def work(selection: slice) -> None:
        block = np.subtract(rows[selection], means[selection], out=out[selection])
        np.multiply(block, slopes[selection], out=block)
        np.add(block, shifts[selection], out=block)
        np.subtract(grads[selection] * factors[selection], block, out=block)

    for_each_block(rows.shape[0], width, work)
    return out.reshape(x.shape)


def _rows_backward(g: Any, x: Any, mean: Any, rstd: Any, w: Any, width: int) -> Any:
    """Compute :func:`normalize_backward` row by row, for means over trailing dims."""
    grads, rows = np.ascontiguousarray(g).reshape(-1, width), np.ascontiguousarray(x).reshape(-1, width)
    means, scales = mean.reshape(-1, 1), rstd.reshape(-1, 1)
    weight = None if w is None else w.reshape(-1)
    out = np.empty_like(rows)

    def work(selection: slice) -> None:
        z = np.subtract(rows[selection], means[selection])
        np.multiply(z, scales[selection], out=z)
        h = grads[selection] if weight is None else grads[selection] * weight
        np.multiply(z, (np.einsum("ij,ij->i", h, z) / width)[:, None], out=z)
        block = np.subtract(h, z, out=out[selection])
        np.subtract(block, h.mean(1, keepdims=True), out=block)
        np.multiply(block, scales[selection], out=block)

    for_each_block(rows.shape[0], rows.shape[1], work)
    return out.reshape(x.shape)


KERNELS: dict[str, Any] = {name: numpy_kernel(in_float32(kernel)) for name, kernel in (
    ("normalize", normalize), ("normalize_backward", normalize_backward),
)}  # fmt: skip
