"""Work on the rows of matrices, and on runs of equal arrays, in blocks that fit the cache, shared among the cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from candelabra_cpu.parallel import split

BLOCK = 1 << 15
"""Elements of a block: several arrays of it fit a core's second-level cache."""


def each_block(rows: int, width: int, work: Callable[[slice], Any]) -> None:
    """``work`` on rows in blocks of about :data:`BLOCK` elements, shared among the cores."""
    step = max(1, BLOCK // max(width, 1))

    def part(first: int, last: int) -> None:
        for start in range(first, last, step):
            work(slice(start, min(start + step, last)))

    split(rows, 4 * rows * width, part)


def as_rows(x: Any, dim: int) -> Any:
    """``x`` as a C-ordered matrix whose rows run along ``dim`` (copied if need be), and the shape with ``dim`` last."""
    moved = np.moveaxis(x, dim, -1)
    return np.ascontiguousarray(moved).reshape(-1, moved.shape[-1]), moved.shape


def from_rows(rows: Any, shape: tuple[int, ...], dim: int) -> Any:
    """What :func:`as_rows` took apart, in C order."""
    out = np.moveaxis(rows.reshape(shape), -1, dim)
    return out if out.flags.c_contiguous else np.ascontiguousarray(out)


def each_run(work: Callable[..., Any], *arrays: Any) -> None:
    """``work`` on runs of a block's length of equal arrays, the first one new and contiguous."""
    flat = [a.reshape(-1) for a in arrays]
    each_block(flat[0].size, 1, lambda run: work(*[a[run] for a in flat]))
