"""Products and extremes of what is brought to one place."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_cpu.indexing import WIDE, _accumulator, _corner, _places, _scatter_parts, _within
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
    line = _line(index, dim)
    if line is not None and src.size >= WIDE * src.shape[dim]:
        _within(line, x.shape[dim])
        _corner(x, dim, index)
        _reduce_slices(out, dim, line, src, reduce, include_self)
    else:
        flat, places = out.reshape(-1), _places(x, dim, index).reshape(-1)
        if not include_self:
            flat[places] = _neutral(reduce, out.dtype)
        UFUNCS[reduce].at(flat, places, src.reshape(-1).astype(out.dtype, copy=False))
    return out.astype(x.dtype, copy=False).reshape(shape)


def _line(index: Any, dim: int) -> Any:
    """The places along ``dim`` if they are the same everywhere, as of an expanded vector; None otherwise."""
    for d, (size, step) in enumerate(zip(index.shape, index.strides)):
        if d != dim and (step != 0 or not size):
            return None
    return index[tuple(slice(None) if d == dim else 0 for d in range(index.ndim))]


def _reduce_slices(out: Any, dim: int, line: Any, src: Any, reduce: str, include_self: bool) -> None:
    """Whole slices at a time, one after the other."""
    corner = out[tuple(slice(None) if d == dim else slice(0, n) for d, n in enumerate(src.shape))]
    target, given = np.moveaxis(corner, dim, 0), np.moveaxis(src.astype(out.dtype, copy=False), dim, 0)
    if not include_self:
        target[line] = _neutral(reduce, out.dtype)
    ufunc = UFUNCS[reduce]
    for row, place in enumerate(line.tolist()):
        part = target[place]
        ufunc(part, given[row], out=part)


KERNELS: dict[str, Any] = {"scatter_extreme": quiet(scatter_extreme)}
