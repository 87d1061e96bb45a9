"""Pairwise distances between points, a block of rows at a time, so that the differences stay in the cache."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any, Final

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.parallel import parallel_for
from candelabra_cpu.precision import in_float32

BLOCK = 1 << 15
"""Differences of coordinates per block."""


def _norms(d: Any, p: float) -> Any:
    """Return the p-norms along the last axis; ``d`` is overwritten."""
    if p == 2:
        return np.sqrt(np.einsum("ijk,ijk->ij", d, d))
    if p == 0:
        return np.count_nonzero(d, axis=-1)
    np.abs(d, out=d)
    if p == 1:
        return np.einsum("ijk->ij", d)
    if p == inf:
        return d.max(-1)
    np.power(d, p, out=d)
    return np.einsum("ijk->ij", d) ** (1 / p)


def _flatten_batch(*arrays: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Broadcast the batch axes of matrices and flatten them into one. Also returns the broadcast batch shape."""
    if all(a.ndim == 2 for a in arrays):
        return [a[None] for a in arrays], ()
    batch = np.broadcast_shapes(*(a.shape[:-2] for a in arrays))
    count = prod(batch)
    return [np.broadcast_to(a, batch + a.shape[-2:]).reshape(count, *a.shape[-2:]) for a in arrays], batch


def _for_each_block(batches: int, rows: int, width: int, work: Callable[[int, slice], Any]) -> None:
    """Call ``work(batch, rows)`` with blocks of about :data:`BLOCK` elements, on several threads."""
    step = max(1, BLOCK // max(width, 1))

    def blocks(first: int, last: int) -> None:
        for batch in range(batches):
            for start in range(first, last, step):
                work(batch, slice(start, min(start + step, last)))

    parallel_for(rows, 4 * batches * rows * width, blocks)


def distances(x1: Any, x2: Any, p: float) -> Any:
    """The p-norm distances between the rows of ``x1`` and those of ``x2``."""
    (a, b), batch = _flatten_batch(x1, x2)
    out = np.zeros((len(a), a.shape[1], b.shape[1]), x1.dtype)
    if not out.size or not a.shape[2]:
        return out.reshape(*batch, *out.shape[1:])

    def work(i: int, rows: slice) -> None:
        out[i, rows] = _norms(a[i, rows, None] - b[i], p)

    _for_each_block(len(a), a.shape[1], prod(b.shape[1:]), work)
    return out.reshape(*batch, *out.shape[1:])


def _norm_gradient(d: Any, g: Any, norm: Any, p: float) -> Any:
    """Return ``g`` times the derivative of the norm with respect to each coordinate of ``d``."""
    if p == 1:
        return np.sign(d) * g
    if p == inf:
        return np.sign(d) * (np.abs(d) == norm) * g
    if p == 2:
        return d * (g / np.where(norm == 0, 1, norm))
    magnitude = np.abs(d)
    slope = np.sign(d) * np.where(magnitude == 0, 1, magnitude) ** (p - 1)
    return slope * (g / np.where(norm == 0, 1, norm) ** (p - 1))


def distances_backward(g: Any, x1: Any, x2: Any, out: Any, p: float) -> Any:
    """The gradient of :func:`distances` with respect to ``x1``."""
    (g, a, b, norm), batch = _flatten_batch(g, x1, x2, out)
    grad = np.zeros(a.shape, a.dtype)
    if p == 0 or not g.size or not a.size:
        return grad.reshape(*batch, *grad.shape[1:])

    def work(i: int, rows: slice) -> None:
        d = a[i, rows, None] - b[i]
        grad[i, rows] = np.einsum("ijk->ik", _norm_gradient(d, g[i, rows, :, None], norm[i, rows, :, None], p))

    _for_each_block(len(a), a.shape[1], prod(b.shape[1:]), work)
    return grad.reshape(*batch, *grad.shape[1:])


def pdist(x: Any, p: float) -> Any:
    """The p-norm distances between each row and all later rows."""
    if x.ndim != 2 or x.dtype.kind != "f" or p < 0:
        raise ValueError(f"pdist() expects a floating matrix and p >= 0, got {x.ndim} dims of {x.dtype} and p={p}")
    n = len(x)
    out = np.zeros(n * (n - 1) // 2, x.dtype)
    if not x.size:
        return out
    scipy_norms = _scipy_norms(x, p)
    norms = scipy_norms or (lambda rows, others: _norms(x[rows, None] - x[others], p))
    step = ROWS if scipy_norms else max(1, min(ROWS, BLOCK // x.size))
    blocks = -(-n // step)

    def work(first: int, last: int) -> None:
        for k in range(first, last):
            for block in {k, blocks - 1 - k}:  # early blocks have the most later rows, so pair them with late blocks
                start, stop = block * step, min((block + 1) * step, n)
                matrix = norms(slice(start, stop), slice(start + 1, n))
                for i in range(start, stop):
                    position = i * (2 * n - i - 1) // 2
                    out[position : position + n - 1 - i] = matrix[i - start, i - start :]

    parallel_for((blocks + 1) // 2, 2 * n * n * x.shape[1], work)
    return out


ROWS: Final = 16
"""Rows that are compared with all later rows at a time."""
SCIPY_METRICS: Final = {1.0: "cityblock", 2.0: "euclidean", inf: "chebyshev"}
"""The metrics of SciPy's compiled loops by the order of the norm."""


def _scipy_norms(x: Any, p: float) -> Callable[[slice, slice], Any] | None:
    """Return SciPy's compiled distances, in float64; None if SciPy has no such metric or treats NaN differently."""
    if p not in SCIPY_METRICS or (p == inf and not np.isfinite(x).all()):
        return None
    from scipy.spatial.distance import cdist

    wide, metric = np.ascontiguousarray(x, np.float64), SCIPY_METRICS[p]
    return lambda rows, others: cdist(wide[rows], wide[others], metric)


KERNELS: dict[str, Any] = {
    "distances": numpy_kernel(in_float32(distances)),
    "distances_backward": numpy_kernel(in_float32(distances_backward)),
    "pdist": numpy_kernel(in_float32(pdist)),
}
