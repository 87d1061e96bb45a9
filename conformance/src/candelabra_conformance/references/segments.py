"""Reductions of segments one by one, and the exclusive or of bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]
REDUCTIONS: Final[dict[str, tuple[Callable[..., Any], float]]] = {
    "sum": (np.sum, 0.0), "mean": (np.sum, 0.0), "prod": (np.prod, 1.0), "max": (np.max, -np.inf),
    "min": (np.min, np.inf),
}  # fmt: skip


@reference("segment_reduce", extended=True)
def segment_reduce(
    data: Array,
    reduce: str,
    lengths: Array | None,
    indices: None,
    offsets: Array | None,
    axis: int,
    unsafe: bool,
    initial: float | None,
) -> Array:
    """Reduce slice by slice. The initial value is one more element, which the mean does not count."""
    if lengths is None:
        assert offsets is not None
        lengths = np.diff(offsets)
    function, identity = REDUCTIONS[reduce]
    first = identity if initial is None else initial
    out = np.empty((*data.shape[:axis], lengths.shape[-1], *data.shape[axis + 1 :]), data.dtype)
    for row in np.ndindex(*data.shape[:axis]):
        begin = 0
        for i, length in enumerate(lengths[row]):
            part = data[row][begin : begin + length]
            value = function(np.concatenate([np.full((1, *part.shape[1:]), first), part]), axis=0)
            if reduce == "mean" and (length or initial is None):
                with np.errstate(invalid="ignore"):
                    value = value / np.longdouble(length)
            out[row][i] = value
            begin += length
    return out


@reference("hash_tensor", as_given=True)
def hash_tensor(input: Array, dim: Any, keepdim: bool, mode: int) -> Array:
    """Combine the bits of float64 or int64."""
    wide = input.astype(np.int64) if input.dtype.kind in "biu" else input.astype(np.float64)
    axes = tuple(range(input.ndim)) if dim is None else dim
    reduce: Any = np.bitwise_xor.reduce
    return np.asarray(reduce(wide.view(np.uint64), axes, keepdims=keepdim))
