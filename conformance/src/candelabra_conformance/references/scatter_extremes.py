"""Scattered products and extremes one by one, triangle indices, and reinterpreted bytes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from candelabra_conformance.numpy_dtypes import host_dtype
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]

COMBINED: Final[dict[str, Any]] = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


@reference("scatter_extreme")
def scatter_extreme(input: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool) -> Array:
    """Reduce element by element. If the old value is excluded, the first element replaces it."""
    out, fresh = np.atleast_1d(input.copy()), np.full(np.atleast_1d(input).shape, not include_self)
    indices, source = np.atleast_1d(index), np.atleast_1d(src)
    for i in np.ndindex(*indices.shape):
        position = list(i)
        position[dim] = indices[i]
        at = tuple(position)
        out[at] = source[i] if fresh[at] else COMBINED[reduce](out[at], source[i])
        fresh[at] = False
    return out.reshape(input.shape)


@reference("triangle_indices")
def triangle_indices(row: int, col: int, offset: int, upper: bool, dtype: Any, device: Any) -> Array:
    """Call NumPy's function."""
    made = np.triu_indices if upper else np.tril_indices
    return np.stack(made(row, offset, col)).astype(host_dtype(dtype))


@reference("view_dtype", as_given=True)
def view_dtype(input: Array, dtype: Any) -> Array:
    """Return the same bytes."""
    return np.ascontiguousarray(input).reshape(input.shape).view(host_dtype(dtype))
