"""Copies in which a view is replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("select_scatter")
def select_scatter(x: Array, src: Array, dim: int, index: int) -> Array:
    """Write one slice."""
    out = x.copy()
    out.swapaxes(0, dim)[index] = np.expand_dims(src, dim).swapaxes(0, dim)[0]
    return out


@reference("slice_scatter")
def slice_scatter(
    x: Array, src: Array, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Array:
    """Write several slices."""
    out = x.copy()
    out.swapaxes(0, dim)[start:end:step] = src.swapaxes(0, dim)
    return out


@reference("as_strided_scatter")
def as_strided_scatter(
    x: Array, src: Array, size: Any, stride: Any, storage_offset: int | None = None, origin: Any = None
) -> Array:
    """Write element by element to contiguous memory."""
    out = x.copy().reshape(-1)
    for place in np.ndindex(*size):
        out[(storage_offset or 0) + int(np.dot(place, stride) if size else 0)] = src[place]
    return out.reshape(x.shape)
