"""Binary search and indices of nonzero elements, by NumPy's functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.order import sorted_place
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("searchsorted", as_given=True)
def searchsorted(
    sequence: Array,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Array | None = None,
) -> Array:
    """Search row by row."""
    if sorter is not None:
        sequence = np.take_along_axis(sequence, sorter, -1)
    found = sorted_place(sequence, np.asarray(input), right or side == "right")
    return found.astype(np.int32 if out_int32 else np.int64)


@reference("bucketize", as_given=True)
def bucketize(input: Any, boundaries: Array, *, out_int32: bool = False, right: bool = False) -> Array:
    """Return the index among the boundaries."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@reference("nonzero_tuple", as_given=True)
def nonzero_tuple(x: Array, *, as_tuple: bool) -> Array | tuple[Array, ...]:
    """Call NumPy's function."""
    return np.nonzero(np.atleast_1d(x)) if as_tuple else np.argwhere(x)


@reference("nonzero_static")
def nonzero_static(x: Array, size: int, fill_value: int = -1) -> Array:
    """Return the first rows of ``argwhere``, then rows of the fill value."""
    rows = np.argwhere(x)[:size]
    return np.concatenate([rows, np.full((size - len(rows), x.ndim), fill_value, np.int64)])


@reference("unravel_index", as_given=True)
def unravel_index(indices: Array, shape: Any) -> tuple[Array, ...]:
    """Call NumPy's function."""
    return tuple(np.asarray(i, np.int64) for i in np.unravel_index(indices.astype(np.int64), shape))
