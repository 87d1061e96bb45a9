"""Writes under a mask, by NumPy's boolean indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from candelabra_conformance.references.arranging import index, index_put
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("masked_scatter")
def masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    """Write the first elements of the source."""
    shape = np.broadcast_shapes(x.shape, mask.shape)
    out, holds = np.broadcast_to(x, shape).copy(), np.broadcast_to(mask, shape)
    out[holds] = source.reshape(-1)[: int(holds.sum())]
    return out


def _inside(mask: Array, indices: Sequence[Array | None]) -> list[Array | None]:
    """Return the indices, with 0 for elements that the mask excludes."""
    return [None if i is None else np.where(mask, i, 0) if i.shape == mask.shape else i for i in indices]


@reference("_unsafe_masked_index")
def masked_index(x: Array, mask: Array, indices: Sequence[Array | None], fill: Any) -> Array:
    """Return the indexed elements, with the fill value for those that the mask excludes."""
    return np.where(mask, index(x, _inside(mask, indices)), np.asarray(fill).astype(x.dtype))


@reference("_unsafe_masked_index_put_accumulate")
def masked_index_put(x: Array, mask: Array, indices: Sequence[Array | None], values: Array) -> Array:
    """Add zeros for the elements that the mask excludes."""
    return index_put(x, _inside(mask, indices), np.where(mask, values, np.zeros_like(values)), True)
