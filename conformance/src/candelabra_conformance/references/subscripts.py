"""Subscripts by NumPy's indexing."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference
from candelabra_conformance.samples.subscripts import applied

Array = np.ndarray[Any, Any]


@reference("Tensor.__getitem__", as_given=True)
def read(x: Array, index: Any) -> Array:
    """Index with NumPy."""
    return applied(x, index)


@reference("Tensor.__setitem__", as_given=True)
def written(x: Array, index: Any, value: Any) -> Array:
    """Write element by element, to positions that are read from an array of flat indices."""
    out = x.copy().reshape(-1)
    positions = applied(np.arange(x.size).reshape(x.shape), index)
    values = np.asarray(value).astype(x.dtype)
    lead = max(values.ndim - positions.ndim, 0)
    out[positions.reshape(-1)] = np.broadcast_to(values.reshape(values.shape[lead:]), positions.shape).reshape(-1)
    return out.reshape(x.shape)
