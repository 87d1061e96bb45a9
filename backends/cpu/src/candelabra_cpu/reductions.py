"""Reductions where NumPy loses digits, and the small matrix product."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.quiet import asarray, ndarray, quiet, run, run_in_copy


def matmul(x: Any, y: Any) -> Any:
    if x.ndim == 2 and y.ndim == 2 and x.dtype.kind == "f" and x.itemsize >= 4:
        return run(x.dot, y)
    return asarray(run_in_copy(np.matmul, x, y))


KERNELS: dict[str, Any] = {"matmul": matmul}
