"""Functions that create tensors of a shape, by NumPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.dtypes import BY_NAME, INTEGER, get_default_dtype
from candelabra.dtypes import dtype as DType

from candelabra_conformance.numpy_dtypes import device_dtype, host_dtype
from candelabra_conformance.references.creation import linspace
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]
DEFAULTS = {"b": "bool", "i": "int64", "f": "float32", "c": "complex64"}
"""The dtypes of tensors from Python's numbers, by NumPy's kind."""


def held(dtype: DType | None, default: DType | None = None) -> np.dtype[Any]:
    """Return NumPy's dtype for a requested dtype, or the default dtype for None."""
    return host_dtype(dtype or default or get_default_dtype())


def shape_of(size: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape from separate sizes or from one sequence."""
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


@reference("zeros", as_given=True)
def zeros(*size: Any, dtype: DType | None = None) -> Array:
    """Call NumPy's function."""
    return np.zeros(shape_of(size), held(dtype))


@reference("ones", as_given=True)
def ones(*size: Any, dtype: DType | None = None) -> Array:
    """Call NumPy's function."""
    return np.ones(shape_of(size), held(dtype))


@reference("empty")
def empty(*size: Any, dtype: DType | None = None) -> Array:
    """Return zeros; the content is unspecified."""
    return np.zeros(shape_of(size))


@reference("empty_strided", "empty_permuted")
def empty_in_order(size: tuple[int, ...], order: tuple[int, ...], dtype: DType | None = None) -> Array:
    """Return zeros; the content is unspecified."""
    return np.zeros(size)


@reference("zeros_like", as_given=True)
def zeros_like(x: Array) -> Array:
    """Call NumPy's function."""
    return np.zeros_like(x)


@reference("ones_like", as_given=True)
def ones_like(x: Array) -> Array:
    """Call NumPy's function."""
    return np.ones_like(x)


@reference("empty_like")
def empty_like(x: Array) -> Array:
    """Return zeros; the content is unspecified."""
    return np.zeros_like(x)


@reference("full_like", as_given=True)
def full_like(x: Array, value: Any) -> Array:
    """Call NumPy's function."""
    return np.full_like(x, value)


@reference("Tensor.new_zeros", as_given=True)
def new_zeros(x: Array, *size: Any, dtype: DType | None = None) -> Array:
    """Call NumPy's function."""
    return np.zeros(shape_of(size), held(dtype, device_dtype(x.dtype)))


@reference("Tensor.new_ones", as_given=True)
def new_ones(x: Array, *size: Any, dtype: DType | None = None) -> Array:
    """Call NumPy's function."""
    return np.ones(shape_of(size), held(dtype, device_dtype(x.dtype)))


@reference("new_full_on_device", as_given=True)
def new_full(x: Array, size: tuple[int, ...], value: Any, dtype: DType | None = None, device: Any = None) -> Array:
    """Call NumPy's function."""
    return np.full(size, value, held(dtype, device_dtype(x.dtype)))


@reference("Tensor.new_empty")
def new_empty(x: Array, *size: Any) -> Array:
    """Return zeros; the content is unspecified."""
    return np.zeros(shape_of(size))


@reference("Tensor.new_empty_strided")
def new_empty_strided(x: Array, size: tuple[int, ...], stride: tuple[int, ...]) -> Array:
    """Return zeros; the content is unspecified."""
    return np.zeros(size)


@reference("Tensor.new", as_given=True)
def new(x: Array, *data: Any) -> Array:
    """Return the values, or zeros if the content is unspecified."""
    return np.zeros(data, x.dtype) if isinstance(data[0], int) else np.array(data[0]).astype(x.dtype)


@reference("full_inferred", as_given=True)
def full(size: Any, fill_value: Any, dtype: DType | None = None, device: Any = None) -> Array:
    """Call NumPy's function, with the default dtype of the number's kind."""
    return np.full(size, fill_value, held(dtype, BY_NAME[DEFAULTS[np.asarray(fill_value).dtype.kind]]))


@reference("arange_to_end", as_given=True)
def arange(start: Any, end: Any = None, step: Any = 1, dtype: DType | None = None) -> Array:
    """Compute by NumPy's function, then cast."""
    counted = np.arange(start) if end is None else np.arange(start, end, step)
    return counted.astype(held(dtype, BY_NAME[DEFAULTS[counted.dtype.kind]]))


@reference("linspace_inferred")
def spaced(start: Any, end: Any, steps: int, dtype: DType | None = None) -> Array:
    """Compute in 80 bits, truncated for integers."""
    default = get_default_dtype()
    return linspace(
        start, end, steps, dtype or (default.to_complex() if isinstance(start + end, complex) else default), None
    )


@reference("eye_inferred", as_given=True)
def eye(n: int, m: int | None = None, dtype: DType | None = None) -> Array:
    """Call NumPy's function."""
    return np.eye(n, m, dtype=held(dtype))


@reference("range", as_given=True)
def range_with_its_end(start: Any, end: Any = None, step: Any = 1, dtype: DType | None = None) -> Array:
    """Compute in float64, then cast."""
    first, last = (0, start) if end is None else (start, end)
    return np.asarray(first + step * np.arange(int((last - first) / step + 1))).astype(held(dtype))


@reference("logspace")
def logspace(start: float, end: float, steps: int, base: float = 10.0, dtype: DType | None = None) -> Array:
    """Compute in 80 bits, truncated for integers."""
    share = np.arange(steps, dtype=np.longdouble) / max(steps - 1, 1)
    values: Array = np.longdouble(base) ** (np.longdouble(start) + (np.longdouble(end) - np.longdouble(start)) * share)
    wanted = dtype or get_default_dtype()
    if wanted.category <= INTEGER:
        return np.asarray(np.trunc(values).astype(host_dtype(wanted)))
    return values.astype(np.clongdouble) if wanted.is_complex else values


@reference("tril_indices")
def tril_indices(rows: int, columns: int, offset: int = 0, dtype: DType | None = None) -> Array:
    """Call NumPy's function."""
    return np.stack(np.tril_indices(rows, offset, columns)).astype(np.int64)


@reference("triu_indices")
def triu_indices(rows: int, columns: int, offset: int = 0, dtype: DType | None = None) -> Array:
    """Call NumPy's function."""
    return np.stack(np.triu_indices(rows, offset, columns)).astype(np.int64)
