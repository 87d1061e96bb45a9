"""Slices by a vector of indices, elements of the flattened tensor, and scattering, element by element."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references import arranging
from candelabra_conformance.references.registry import reference
from candelabra_conformance.references.scatter_extremes import scatter_extreme

Array = np.ndarray[Any, Any]


def _in_dtype(value: Any, like: Array) -> Array:
    return np.asarray(value).astype(like.dtype)


@reference("index_add_scaled")
def index_add_scaled(x: Array, dim: int, index: Array, source: Array, alpha: Any) -> Array:
    """Add slice by slice, each scaled by the number."""
    return arranging.index_add(x, dim, index, np.asarray(source * _in_dtype(alpha, source)))


@reference("index_copy")
def index_copy(x: Array, dim: int, index: Array, source: Array) -> Array:
    """Copy slice by slice."""
    out = np.atleast_1d(x.copy())
    given = np.atleast_1d(source)
    for position, target in enumerate(index.reshape(-1)):
        out.swapaxes(0, dim)[target] = given.swapaxes(0, dim)[position]
    return out.reshape(x.shape)


@reference("index_fill")
def index_fill(x: Array, dim: int, index: Array, value: Any) -> Array:
    """Fill slice by slice."""
    out = np.atleast_1d(x.copy())
    for target in index.reshape(-1):
        out.swapaxes(0, dim)[target] = value
    return out.reshape(x.shape)


def _broadcast_index(index: Array, dim: int, shape: tuple[int, ...]) -> Array:
    """Return a vector of indices along ``dim``, repeated over the other dims."""
    sizes = [len(index.reshape(-1)) if d == dim else 1 for d in range(len(shape))]
    return np.broadcast_to(index.reshape(sizes), shape)


@reference("index_reduce")
def index_reduce(x: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True) -> Array:
    """Reduce like ``scatter_reduce``, slice by slice."""
    given = np.atleast_1d(source)
    return scatter_reduce(x, dim, _broadcast_index(index, dim, given.shape), given, reduce, include_self)


# -- scattering -------------------------------------------------------------------------------------------------------
@reference("gather_sparse_grad")
def gather_sparse_grad(x: Array, dim: int, index: Array, sparse_grad: bool) -> Array:
    """Do the same as ``gather``."""
    return arranging.gather(x, dim, index)


@reference("scatter_value")
def scatter_value(x: Array, dim: int, index: Array, value: Any) -> Array:
    """Scatter the number to each index."""
    return arranging.scatter_src(x, dim, index, np.broadcast_to(_in_dtype(value, x), index.shape))


@reference("scatter_reduced")
def scatter_reduced(x: Array, dim: int, index: Array, src: Array, reduce: str | None) -> Array:
    """Add, multiply or write."""
    if reduce == "add":
        return arranging.scatter_add(x, dim, index, src)
    if reduce is None:
        return arranging.scatter_src(x, dim, index, src)
    return scatter_extreme(x, dim, index, _cropped(src, index), "prod", True)


@reference("scatter_value_reduced")
def scatter_value_reduced(x: Array, dim: int, index: Array, value: Any, reduce: str | None) -> Array:
    """Do the same with a number."""
    return scatter_reduced(x, dim, index, np.broadcast_to(_in_dtype(value, x), index.shape), reduce)


def _cropped(src: Array, index: Array) -> Array:
    return np.atleast_1d(src)[tuple(slice(0, n) for n in index.shape or (1,))]


@reference("scatter_reduce")
def scatter_reduce(x: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool = True) -> Array:
    """Compute sums and means with counts; the others one by one."""
    source = _cropped(src, index)
    if reduce not in ("sum", "mean"):
        return scatter_extreme(x, dim, index, source, reduce, include_self)
    line = np.atleast_1d(x.copy())
    positions: list[Array] = list(np.indices(source.shape))
    positions[dim] = np.atleast_1d(index)
    at = tuple(positions)
    if not include_self:
        line[at] = 0
    np.add.at(line, at, source)
    if reduce == "mean":
        count = np.full(line.shape, int(include_self))
        np.add.at(count, at, 1)
        count = np.maximum(count, 1)
        line = line // count.astype(line.dtype) if line.dtype.kind in "iu" else line / count
    return line.reshape(x.shape)


# -- elements of the flattened tensor ---------------------------------------------------------------------------------
@reference("take")
def take(x: Array, index: Array) -> Array:
    """Call NumPy's function."""
    return np.asarray(x.reshape(-1)[index])


@reference("put")
def put(x: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """Write the elements sequentially."""
    out = x.copy().reshape(-1)
    for position, value in zip(index.flat, source.flat, strict=True):
        out[position] = out[position] + value if accumulate else value
    return out.reshape(x.shape)


@reference("take_along_dim")
def take_along_dim(x: Array, indices: Array, dim: int | None = None) -> Array:
    """Call NumPy's function, on flattened arrays if ``dim`` is None."""
    if dim is None:
        return x.reshape(-1)[indices.reshape(-1)]
    return np.take_along_axis(x, indices, dim) if x.ndim else x
