"""Products and extremes of what is brought to one place."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.indexing import _accumulator, _places, _scatter_parts
from candelabra_cpu.quiet import quiet

UFUNCS: dict[str, np.ufunc] = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _neutral(reduce: str, dtype: Any) -> Any:
    """What changes no result."""
    if reduce == "prod":
        return 1
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.min if reduce == "amax" else limits.max
    return -np.inf if reduce == "amax" else np.inf


def scatter_extreme(x: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool) -> Any:
    """In order of the index; half types in float32."""
    shape = x.shape
    x, index, src = _scatter_parts(x, index, src)
    out = _accumulator(x)
    flat, places = out.reshape(-1), _places(x, dim, index).reshape(-1)
    if not include_self:
        flat[places] = _neutral(reduce, out.dtype)
    UFUNCS[reduce].at(flat, places, src.reshape(-1).astype(out.dtype, copy=False))
    return out.astype(x.dtype, copy=False).reshape(shape)


KERNELS: dict[str, Any] = {"scatter_extreme": quiet(scatter_extreme)}
