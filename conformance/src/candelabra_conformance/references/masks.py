"""Writing where a mask holds: NumPy's boolean indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from candelabra_conformance.references.arranging import index, index_put
from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


@reference("masked_scatter")
def masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    """The first elements of the source."""
    shape = np.broadcast_shapes(x.shape, mask.shape)
    out, holds = np.broadcast_to(x, shape).copy(), np.broadcast_to(mask, shape)
    out[holds] = source.reshape(-1)[: int(holds.sum())]
    return out


def _inside(mask: Array, indices: Sequence[Array | None]) -> list[Array | None]:
    """Indices with 0 where the mask does not hold."""
    return [None if i is None else np.where(mask, i, 0) if i.shape == mask.shape else i for i in indices]


@reference("_unsafe_masked_index")
def masked_index(x: Array, mask: Array, indices: Sequence[Array | None], fill: Any) -> Array:
    """What the indices select, with the fill where the mask does not hold."""
    return np.where(mask, index(x, _inside(mask, indices)), np.asarray(fill).astype(x.dtype))


@reference("_unsafe_masked_index_put_accumulate")
def masked_index_put(x: Array, mask: Array, indices: Sequence[Array | None], values: Array) -> Array:
    """Zeros are added where the mask does not hold."""
    return index_put(x, _inside(mask, indices), np.where(mask, values, np.zeros_like(values)), True)
