"""Tensors created from numbers, and casts."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.dtypes import INTEGER
from candelabra.dtypes import dtype as DType

from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]


@reference("full")
def full(shape: Any, value: Any, dtype: DType, device: Any) -> Array:
    """Return an array of one number in the dtype."""
    return np.full(shape, value, host_dtype(dtype))


@reference("arange")
def arange(start: Any, step: Any, length: int, dtype: DType, device: Any) -> Array:
    """Compute in int64 or float64, then cast."""
    return np.asarray(start + step * np.arange(length)).astype(host_dtype(dtype))


@reference("linspace")
def linspace(start: Any, end: Any, steps: int, dtype: DType, device: Any) -> Array:
    """Compute in 80 bits, truncated for integers."""
    wide = np.clongdouble if dtype.is_complex else np.longdouble
    # The product first: a quotient that is an integer is then exact, and is not truncated to the one below.
    values = wide(start) + (wide(end) - wide(start)) * np.arange(steps, dtype=wide) / max(steps - 1, 1)
    return np.trunc(values).astype(host_dtype(dtype)) if dtype.category <= INTEGER else values


@reference("eye")
def eye(n: int, m: int, dtype: DType, device: Any) -> Array:
    """Call NumPy's function."""
    return np.eye(n, m, dtype=host_dtype(dtype))


@reference("new_full")
def new_full(x: Array, shape: Any, value: Any, dtype: DType | None) -> Array:
    """Return an array of one number."""
    return np.full(shape, value, x.dtype if dtype is None else host_dtype(dtype))


@reference("new_arange")
def new_arange(x: Array, start: Any, step: Any, length: int, dtype: DType | None) -> Array:
    """Compute in int64 or float64, then cast."""
    return np.asarray(start + step * np.arange(length)).astype(x.dtype if dtype is None else host_dtype(dtype))


@reference("new_eye")
def new_eye(x: Array, n: int, m: int, dtype: DType | None) -> Array:
    """Call NumPy's function."""
    return np.eye(n, m, dtype=x.dtype if dtype is None else host_dtype(dtype))


@reference("cast")
def cast(x: Array, dtype: DType) -> Array:
    """Cast as NumPy does. Complex numbers lose their imaginary component; as bool, any number except 0 is True."""
    if dtype.name == "bool":
        return np.asarray(x != 0)
    return (x.real if x.dtype.kind == "c" and not dtype.is_complex else x).astype(host_dtype(dtype))


references({"moved": lambda x, target, dtype=None: x if dtype is None else cast(x, dtype)})
