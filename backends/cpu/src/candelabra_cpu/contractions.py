"""The Kronecker product with one long inner loop, and the dot product that conjugates on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.halves import widened
from candelabra_cpu.quiet import quiet


def kron(x: Any, y: Any) -> Any:
    """Every element of ``x`` times all of ``y``: the last axis is laid out in both before they are multiplied."""
    rank = max(x.ndim, y.ndim)
    if not rank:
        return x * y
    x, y = x.reshape((1,) * (rank - x.ndim) + x.shape), y.reshape((1,) * (rank - y.ndim) + y.shape)
    shape = tuple(m * n for m, n in zip(x.shape, y.shape))
    wide, tiled = np.repeat(x, y.shape[-1], -1), np.tile(y, (1,) * (rank - 1) + (x.shape[-1],))
    outside = [s for size in x.shape[:-1] for s in (size, 1)]
    inside = [s for size in y.shape[:-1] for s in (1, size)]
    return (wide.reshape(*outside, shape[-1]) * tiled.reshape(*inside, shape[-1])).reshape(shape)


def vdot(x: Any, y: Any) -> Any:
    """The dot product of two vectors, the first one conjugated."""
    if x.ndim != 1 or x.shape != y.shape or x.dtype != y.dtype:
        raise ValueError("two vectors of one length and dtype")
    return np.vdot(x, y)


KERNELS: dict[str, Any] = {"kron": quiet(widened(kron)), "vdot": quiet(widened(vdot))}
