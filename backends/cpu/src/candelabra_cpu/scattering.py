"""Scatter reductions: products and extremes."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.indexing import WIDE_ROW, _accumulator, _check_bounds, _crop_to_index, _flat_index, _prepare_scatter
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
    vector = _index_vector(index, dim)
    if vector is not None and src.size >= WIDE_ROW * src.shape[dim]:
        _check_bounds(vector, x.shape[dim])
        _crop_to_index(x, dim, index)
        _reduce_slices(out, dim, vector, src, reduce, include_self)
    else:
        flat, indices = out.reshape(-1), _flat_index(x, dim, index).reshape(-1)
        if not include_self:
            flat[indices] = _identity_element(reduce, out.dtype)
        UFUNCS[reduce].at(flat, indices, src.reshape(-1).astype(out.dtype, copy=False))
    return out.astype(x.dtype, copy=False).reshape(shape)


def _index_vector(index: Any, dim: int) -> Any:
    """Return the indices along ``dim`` if they are the same for all other dims, as in an expanded vector; otherwise
    None.
    """
    for d, (size, step) in enumerate(zip(index.shape, index.strides)):
        if d != dim and (step != 0 or not size):
            return None
    return index[tuple(slice(None) if d == dim else 0 for d in range(index.ndim))]


def _reduce_slices(out: Any, dim: int, vector: Any, src: Any, reduce: str, include_self: bool) -> None:
    """Reduce whole slices, one after another."""
    cropped = out[tuple(slice(None) if d == dim else slice(0, n) for d, n in enumerate(src.shape))]
    target, values = np.moveaxis(cropped, dim, 0), np.moveaxis(src.astype(out.dtype, copy=False), dim, 0)
    if not include_self:
        target[vector] = _identity_element(reduce, out.dtype)
    ufunc = UFUNCS[reduce]
    for row, position in enumerate(vector.tolist()):
        slice_ = target[position]
        ufunc(slice_, values[row], out=slice_)


KERNELS: dict[str, Any] = {"scatter_extreme": numpy_kernel(scatter_extreme)}
