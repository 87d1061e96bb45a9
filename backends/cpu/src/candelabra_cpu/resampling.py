"""The product with a banded matrix along a dim, and with its transpose."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import in_float32


def resample(x: Any, dim: int, start: Any, weight: Any) -> Any:
    """Sum ``weight[i, k] * x[start[i] + k]`` over k, along ``dim``."""
    return _product(_matrix(start, weight, x.shape[dim]), x, dim)


def resample_adjoint(g: Any, dim: int, start: Any, weight: Any, size: int) -> Any:
    """The product with the transpose."""
    return _product(_matrix(start, weight, size).T.tocsr(), g, dim)


def _matrix(start: Any, weight: Any, size: int) -> Any:
    """Return a sparse matrix with ``size`` columns, without the weights that are 0: they do not multiply infinities."""
    from scipy.sparse import csr_array

    rows, k = np.nonzero(weight)
    return csr_array((weight[rows, k], (rows, start[rows] + k)), (len(weight), size))


def _product(matrix: Any, x: Any, dim: int) -> Any:
    rows = np.moveaxis(x, dim, 0)
    out = matrix @ rows.reshape(len(rows), x.size // max(len(rows), 1))
    return np.ascontiguousarray(np.moveaxis(out.reshape(matrix.shape[0], *rows.shape[1:]), 0, dim))


KERNELS: dict[str, Any] = {
    "resample": numpy_kernel(in_float32(resample)), "resample_adjoint": numpy_kernel(in_float32(resample_adjoint)),
}  # fmt: skip
