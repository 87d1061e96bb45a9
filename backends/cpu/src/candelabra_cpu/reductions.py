"""Reductions where NumPy loses digits, and the small matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.quiet import asarray, ndarray, run, run_in_copy


_dot = ndarray.dot  # half the time of np.matmul on small matrices, and the same BLAS


def matmul(x: Any, y: Any) -> Any:
    """The matrix product; half types are multiplied in float32."""
    if x.ndim == 2 == y.ndim and x.dtype.char in "fdFD":
        try:
            return run(_dot, x, y)
        except RuntimeError:  # another thread is inside the context
            return run_in_copy(_dot, x, y)
    if x.dtype.itemsize == 2 and x.dtype.kind not in "iu":
        return matmul(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
    return asarray(run_in_copy(np.matmul, x, y))


KERNELS: dict[str, Any] = {"matmul": matmul}
