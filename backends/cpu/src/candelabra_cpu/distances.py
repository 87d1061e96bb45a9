"""Pairwise distances between points, for some rows at a time: the differences of all points may not fit in memory."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any, Final

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import in_float32, in_float64

BLOCK = 1 << 16
"""Differences of coordinates per block."""


def _norms(d: Any, p: float) -> Any:
    """Return the p-norms along the last axis."""
    return np.sqrt(np.vecdot(d, d)) if p == 2 else np.linalg.vector_norm(d, ord=p, axis=-1)


def _blocks(count: int, size: int) -> Iterator[slice]:
    """Yield slices of ``count`` rows with ``size`` differences each."""
    step = max(1, BLOCK // max(size, 1))
    return (slice(start, start + step) for start in range(0, count, step))


def distances(x1: Any, x2: Any, p: float) -> Any:
    """The p-norm distances between the rows of ``x1`` and those of ``x2``."""
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    out = np.zeros((*batch, x1.shape[-2], x2.shape[-2]), x1.dtype)
    for rows in _blocks(x1.shape[-2], out[..., :1, :].size * x1.shape[-1]):
        out[..., rows, :] = _norms(x1[..., rows, None, :] - x2[..., None, :, :], p)
    return out


def distances_backward(g: Any, x1: Any, x2: Any, out: Any, p: float) -> Any:
    """The gradient of :func:`distances` with respect to ``x1``.

    It is not computed in float64: where a coordinate attains the maximum, it equals a norm that was rounded.
    """
    grad = np.zeros((*g.shape[:-1], x1.shape[-1]), x1.dtype)
    for rows in _blocks(x1.shape[-2] if p else 0, g[..., :1, :].size * x1.shape[-1]):
        d = x1[..., rows, None, :] - x2[..., None, :, :]
        slopes = _norm_gradient(d, g[..., rows, :, None], out[..., rows, :, None], p)
        grad[..., rows, :] = slopes.sum(-2, dtype=np.float64)
    return grad


def _norm_gradient(d: Any, g: Any, norm: Any, p: float) -> Any:
    """Return ``g`` times the derivative of the norm with respect to each coordinate of ``d``; 0 for equal points."""
    if p == 1:
        return np.sign(d) * g
    if p == inf:
        return np.sign(d) * (np.abs(d) == norm) * g
    scale = np.where(norm == 0, 1, norm)
    if p == 2:
        return d * (g / scale)
    magnitude = np.abs(d)
    return np.sign(d) * np.where(magnitude == 0, 1, magnitude) ** (p - 1) * (g / scale ** (p - 1))


METRICS: Final = {1.0: "cityblock", 2.0: "euclidean"}
"""SciPy's names of the norms whose special values are those of :func:`_norms`."""


def pdist(x: Any, p: float) -> Any:
    """The p-norm distances between each row and all later rows."""
    if x.ndim != 2 or x.dtype.kind != "f" or p < 0:
        raise ValueError(f"pdist() expects a floating matrix and p >= 0, got {x.ndim} dims of {x.dtype} and p={p}")
    if p in METRICS:
        from scipy.spatial import distance

        return distance.pdist(x, METRICS[p]) if x.size else np.zeros(len(x) * (len(x) - 1) // 2)
    later = [_norms(row - x[i + 1 :], p) for i, row in enumerate(x)]
    return np.concatenate(later) if later else np.zeros(0, x.dtype)


KERNELS: dict[str, Any] = {
    "distances": numpy_kernel(in_float64(distances)), "pdist": numpy_kernel(in_float64(pdist)),
    "distances_backward": numpy_kernel(in_float32(distances_backward)),
}  # fmt: skip
