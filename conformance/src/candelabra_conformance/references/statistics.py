"""Sums and means without NaN, extremes in pairs, and counts, by NumPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


def _axis(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, (list, tuple)) else dim


def _as(input: Array, dtype: Any) -> Array:
    return input if dtype is None else input.astype(host_dtype(dtype))


@reference("nansum")
def nansum(input: Array, dim: Any, keepdim: bool, dtype: Any) -> Array:
    """Call NumPy's function."""
    whole = _as(input, dtype)
    wide = np.int64 if whole.dtype.kind in "biu" else whole.dtype
    return np.asarray(np.nansum(whole, axis=_axis(dim), keepdims=keepdim, dtype=wide))


@reference("nanmean")
def nanmean(input: Array, dim: Any, keepdim: bool, dtype: Any) -> Array:
    """Divide the sum by the number of elements that are not NaN."""
    total = nansum(input, dim, keepdim, dtype)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / (input == input).sum(axis=_axis(dim), keepdims=keepdim), total.dtype)


@reference("count_nonzero")
def count_nonzero(input: Array, dim: Any) -> Array:
    """Call NumPy's function."""
    return np.asarray(np.count_nonzero(input, axis=_axis(dim)))


@reference("aminmax")
def aminmax(input: Array, dim: Any, keepdim: bool) -> tuple[Array, ...]:
    """Call NumPy's two functions."""
    if not input.ndim:
        return input, input
    return np.asarray(input.min(axis=dim, keepdims=keepdim)), np.asarray(input.max(axis=dim, keepdims=keepdim))


@reference("tally")
def tally(indices: Array, weights: Array | None, size: int) -> Array:
    """Count one by one."""
    values = np.ones(len(indices), np.int64) if weights is None else weights
    out = np.zeros(size, np.int64 if values.dtype.kind in "biu" else values.dtype)
    for index, value in zip(indices, values, strict=True):
        out[index] += value
    return out
