"""The Kronecker product with one long inner loop, and the conjugating dot product."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import in_float32


def kron(x: Any, y: Any) -> Any:
    """The Kronecker product. Both operands are expanded along the last axis first, so that one inner loop is long."""
    rank = max(x.ndim, y.ndim)
    if not rank:
        return x * y
    x, y = x.reshape((1,) * (rank - x.ndim) + x.shape), y.reshape((1,) * (rank - y.ndim) + y.shape)
    shape = tuple(m * n for m, n in zip(x.shape, y.shape))
    repeated, tiled = np.repeat(x, y.shape[-1], -1), np.tile(y, (1,) * (rank - 1) + (x.shape[-1],))
    x_sizes = [s for size in x.shape[:-1] for s in (size, 1)]
    y_sizes = [s for size in y.shape[:-1] for s in (1, size)]
    return (repeated.reshape(*x_sizes, shape[-1]) * tiled.reshape(*y_sizes, shape[-1])).reshape(shape)


def vdot(x: Any, y: Any) -> Any:
    """The dot product of two vectors with the first one conjugated."""
    if x.ndim != 1 or x.shape != y.shape or x.dtype != y.dtype:
        raise ValueError(f"vdot() expects two vectors of one length, got shapes {x.shape} and {y.shape}")
    return np.vdot(x, y)


KERNELS: dict[str, Any] = {"kron": numpy_kernel(in_float32(kron)), "vdot": numpy_kernel(in_float32(vdot))}
