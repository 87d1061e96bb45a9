"""Distances of all pairs of points, a few rows at a time, so that the differences stay in the cache."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any, Final

import numpy as np

from candelabra_cpu.halves import widened
from candelabra_cpu.parallel import split
from candelabra_cpu.quiet import quiet

BLOCK = 1 << 15
"""Differences that are looked at together."""


def _lengths(d: Any, p: float) -> Any:
    """The p-norms along the last axis; ``d`` is overwritten."""
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


def _aligned(*arrays: Any) -> tuple[list[Any], tuple[int, ...]]:
    """Batch axes broadcast and flattened into one."""
    if all(a.ndim == 2 for a in arrays):
        return [a[None] for a in arrays], ()
    batch = np.broadcast_shapes(*(a.shape[:-2] for a in arrays))
    count = prod(batch)
    return [np.broadcast_to(a, batch + a.shape[-2:]).reshape(count, *a.shape[-2:]) for a in arrays], batch


def _each_block(batches: int, rows: int, width: int, work: Callable[[int, slice], Any]) -> None:
    """``work(batch, rows)`` in blocks of about :data:`BLOCK` elements, shared among the cores."""
    step = max(1, BLOCK // max(width, 1))

    def part(first: int, last: int) -> None:
        for batch in range(batches):
            for start in range(first, last, step):
                work(batch, slice(start, min(start + step, last)))

    split(rows, 4 * batches * rows * width, part)


def distances(x1: Any, x2: Any, p: float) -> Any:
    """The p-norms of all differences of rows."""
    (a, b), batch = _aligned(x1, x2)
    out = np.zeros((len(a), a.shape[1], b.shape[1]), x1.dtype)
    if not out.size or not a.shape[2]:
        return out.reshape(*batch, *out.shape[1:])

    def work(i: int, rows: slice) -> None:
        out[i, rows] = _lengths(a[i, rows, None] - b[i], p)

    _each_block(len(a), a.shape[1], prod(b.shape[1:]), work)
    return out.reshape(*batch, *out.shape[1:])


def _slopes(d: Any, g: Any, length: Any, p: float) -> Any:
    """``g`` times the derivative of the length by each coordinate of ``d``."""
    if p == 1:
        return np.sign(d) * g
    if p == inf:
        return np.sign(d) * (np.abs(d) == length) * g
    if p == 2:
        return d * (g / np.where(length == 0, 1, length))
    size = np.abs(d)
    slope = np.sign(d) * np.where(size == 0, 1, size) ** (p - 1)
    return slope * (g / np.where(length == 0, 1, length) ** (p - 1))


def distances_backward(g: Any, x1: Any, x2: Any, out: Any, p: float) -> Any:
    """The gradient of the first points, summed over the second ones."""
    (g, a, b, length), batch = _aligned(g, x1, x2, out)
    made = np.zeros(a.shape, a.dtype)
    if p == 0 or not g.size or not a.size:
        return made.reshape(*batch, *made.shape[1:])

    def work(i: int, rows: slice) -> None:
        d = a[i, rows, None] - b[i]
        made[i, rows] = np.einsum("ijk->ik", _slopes(d, g[i, rows, :, None], length[i, rows, :, None], p))

    _each_block(len(a), a.shape[1], prod(b.shape[1:]), work)
    return made.reshape(*batch, *made.shape[1:])


def pdist(x: Any, p: float) -> Any:
    """The p-norms of the differences of each row and the later ones."""
    if x.ndim != 2 or x.dtype.kind != "f" or p < 0:
        raise ValueError("the points are rows of floating numbers")
    n = len(x)
    out = np.zeros(n * (n - 1) // 2, x.dtype)
    if not x.size:
        return out
    compiled = _compiled(x, p)
    lengths = compiled or (lambda rows, others: _lengths(x[rows, None] - x[others], p))
    step = ROWS if compiled else max(1, min(ROWS, BLOCK // x.size))
    blocks = -(-n // step)

    def work(first: int, last: int) -> None:
        for k in range(first, last):
            for block in {k, blocks - 1 - k}:  # the early blocks have the most later rows
                start, stop = block * step, min((block + 1) * step, n)
                found = lengths(slice(start, stop), slice(start + 1, n))
                for i in range(start, stop):
                    place = i * (2 * n - i - 1) // 2
                    out[place : place + n - 1 - i] = found[i - start, i - start :]

    split((blocks + 1) // 2, 2 * n * n * x.shape[1], work)
    return out


ROWS: Final = 16
"""Rows that are compared with all later ones at once."""
COMPILED: Final = {1.0: "cityblock", 2.0: "euclidean", inf: "chebyshev"}
"""The norms that SciPy has a loop for, by its names."""


def _compiled(x: Any, p: float) -> Callable[[slice, slice], Any] | None:
    """SciPy's loop over the differences, in float64; None where it has none, or would not say NaN as we do."""
    if p not in COMPILED or (p == inf and not np.isfinite(x).all()):
        return None
    from scipy.spatial.distance import cdist

    wide, metric = np.ascontiguousarray(x, np.float64), COMPILED[p]
    return lambda rows, others: cdist(wide[rows], wide[others], metric)


KERNELS: dict[str, Any] = {
    "distances": quiet(widened(distances)),
    "distances_backward": quiet(widened(distances_backward)),
    "pdist": quiet(widened(pdist)),
}
