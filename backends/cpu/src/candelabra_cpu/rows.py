"""Process rows of matrices, or flattened arrays, in blocks that fit in the cache, on several threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from candelabra_cpu.parallel import parallel_for

BLOCK = 1 << 15
"""Elements of a block. Several arrays of this size fit in the second-level cache of a core."""


def for_each_block(rows: int, width: int, work: Callable[[slice], Any]) -> None:
    """Call ``work`` with slices of rows of about :data:`BLOCK` elements each, on several threads."""
    step = max(1, BLOCK // max(width, 1))

    def part(first: int, last: int) -> None:
        for start in range(first, last, step):
            work(slice(start, min(start + step, last)))

    parallel_for(rows, 4 * rows * width, part)


def as_rows(x: Any, dim: int) -> Any:
    """Return ``x`` as a contiguous matrix whose rows are the slices along ``dim``, and the shape with ``dim`` last."""
    moved = np.moveaxis(x, dim, -1)
    return np.ascontiguousarray(moved).reshape(-1, moved.shape[-1]), moved.shape


def from_rows(rows: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Undo :func:`as_rows`; the result is contiguous."""
    out = np.moveaxis(rows.reshape(shape), -1, dim)
    return out if out.flags.c_contiguous else np.ascontiguousarray(out)


def for_each_flat_block(work: Callable[..., Any], *arrays: Any) -> None:
    """Call ``work`` with blocks of arrays of one shape, flattened. The first array must be contiguous."""
    flat = [a.reshape(-1) for a in arrays]
    for_each_block(flat[0].size, 1, lambda block: work(*[a[block] for a in flat]))
