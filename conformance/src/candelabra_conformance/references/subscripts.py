"""Subscripts by NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference
from candelabra_conformance.samples.subscripts import applied

Array = np.ndarray[Any, Any]


@reference("Tensor.__getitem__", as_given=True)
def read(x: Array, index: Any) -> Array:
    """NumPy's."""
    return applied(x, index)


@reference("Tensor.__setitem__", as_given=True)
def written(x: Array, index: Any, value: Any) -> Array:
    """Element after element, where the same index of an array of places says."""
    out = x.copy().reshape(-1)
    places = applied(np.arange(x.size).reshape(x.shape), index)
    values = np.asarray(value).astype(x.dtype)
    lead = max(values.ndim - places.ndim, 0)
    out[places.reshape(-1)] = np.broadcast_to(values.reshape(values.shape[lead:]), places.shape).reshape(-1)
    return out.reshape(x.shape)
