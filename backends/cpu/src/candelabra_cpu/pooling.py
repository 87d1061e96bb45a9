"""Pooling: the kernels of the Array API, in float32 for half types; and sums into planes."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from candelabra_arrayapi.network import kernels

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import in_float32

_pools = kernels(np, {})  # half types arrive as float32


def scatter_planes(x: Any, index: Any, size: int, distinct: bool) -> Any:
    """Scatter or add values at indices into planes of zeros."""
    planes = prod(x.shape[:-1])
    flat = (index.reshape(planes, index.shape[-1]) + np.arange(planes, dtype=np.int64)[:, None] * size).reshape(-1)
    if index.size and (int(index.min()) < 0 or int(index.max()) >= size):
        raise IndexError(f"index out of range for a plane of {size} elements")
    if distinct:
        out = np.zeros(planes * size, x.dtype)
        out[flat] = x.reshape(-1)
    elif x.dtype.kind == "f":
        out = np.bincount(flat, weights=x.reshape(-1), minlength=planes * size).astype(x.dtype)
    else:
        out = np.zeros(planes * size, x.dtype)
        np.add.at(out, flat, x.reshape(-1))
    return out.reshape(*x.shape[:-1], size)


KERNELS: dict[str, Any] = {
    "scatter_planes": numpy_kernel(in_float32(scatter_planes)),
    **{name: numpy_kernel(in_float32(_pools[name])) for name in (
        "sum_pool", "sum_pool_adjoint", "max_pool", "max_pool_values",
    )},
}  # fmt: skip
