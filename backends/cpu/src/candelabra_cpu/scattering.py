"""Scatter reductions: products and extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.indexing import _accumulator, _flat_index, _prepare_scatter
from candelabra_cpu.numpy_kernels import numpy_kernel

UFUNCS: dict[str, np.ufunc] = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _identity_element(reduce: str, dtype: Any) -> Any:
    """Return the identity element of a reduction."""
    if reduce == "prod":
        return 1
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if reduce == "amax" else limits.max
    return -np.inf if reduce == "amax" else np.inf


def scatter_extreme(x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    """Reduce the elements of ``src`` into ``x`` in the order of the index; half types in float32."""
    shape = x.shape
    x, index, src = _prepare_scatter(x, index, src)
    out = _accumulator(x)
    flat, indices = out.reshape(-1), _flat_index(x, dim, index).reshape(-1)
    if not include_self:
        flat[indices] = _identity_element(reduce, out.dtype)
    UFUNCS[reduce].at(flat, indices, src.reshape(-1).astype(out.dtype, copy=False))
    return out.astype(x.dtype, copy=False).reshape(shape)


KERNELS: dict[str, Any] = {"scatter_extreme": numpy_kernel(scatter_extreme)}
