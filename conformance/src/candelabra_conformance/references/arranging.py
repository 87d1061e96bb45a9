"""Views, joins, diagonals, windows, triangles, and reading and writing by index, without computing values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference, references

Array = np.ndarray[Any, Any]
Ints = tuple[int, ...]
Index = tuple[Any, ...]


def _same(x: Array) -> Array:
    return x


references(
    {
        "detach": _same,
        "alias": _same,
        "clone": _same,
        "permute": np.transpose,
        "transpose": lambda x, dim0, dim1: np.swapaxes(x, dim0, dim1) if x.ndim else x,
        "t": np.transpose,
        "expand": np.broadcast_to,
        "view": np.reshape,
        "unsqueeze": np.expand_dims,
        "squeeze": lambda x, dims: x.reshape([s for i, s in enumerate(x.shape) if i not in dims]),
        "cat": lambda tensors, dim=0: np.concatenate(tensors, dim),
        "flip": lambda x, dims: np.flip(x, dims if x.ndim else None),
        "roll": lambda x, shifts, dims=None: np.roll(x, shifts, dims),
        "tril": lambda x, diagonal=0: np.tril(x, diagonal),
        "triu": lambda x, diagonal=0: np.triu(x, diagonal),
        "basic_index": lambda x, index: x[index],
        "copied": lambda x, src: np.broadcast_to(src, x.shape),
        "fill": lambda x, value: np.broadcast_to(np.asarray(value).astype(x.dtype), x.shape),
        "fill_": lambda x, value: np.broadcast_to(np.asarray(value).astype(x.dtype), x.shape),
        "zero_": np.zeros_like,
        "filled": lambda x, value: np.broadcast_to(np.asarray(value).astype(x.dtype), x.shape),
        "diagonal": np.diagonal,
        "view_as_real": lambda x: np.stack([x.real, x.imag], -1),
        "nonzero": np.argwhere,
    }
)


@reference("basic_index_adjoint")
def basic_index_adjoint(x: Array, shape: Ints, index: Index) -> Array:
    """Return zeros, except for the indexed elements."""
    out = np.zeros(shape, x.dtype)
    out[index] = x
    return out


@reference("basic_index_scatter")
def basic_index_scatter(x: Array, src: Array, index: Index) -> Array:
    """Write into a copy."""
    out = x.copy()
    out[index] = src
    return out


@reference("diagonal_scatter")
def diagonal_scatter(x: Array, src: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Write to a diagonal, which is found from an array of flat indices."""
    positions = np.diagonal(np.arange(x.size).reshape(x.shape), offset, dim1, dim2)
    out = x.copy().reshape(-1)
    out[positions] = src
    return out.reshape(x.shape)


@reference("unfold")
def unfold(x: Array, dimension: int, size: int, step: int) -> Array:
    """Stack the windows."""
    line = x if x.ndim else x.reshape(1)
    starts = range(0, line.shape[dimension] - size + 1, step)
    windows = [np.take(line, np.arange(at, at + size), dimension) for at in starts]
    stacked = np.moveaxis(np.stack(windows, dimension), dimension + 1, -1)
    return stacked if x.ndim else stacked.reshape(size)


@reference("as_strided")
def as_strided(x: Array, size: Ints, stride: Ints, storage_offset: int, origin: Any) -> Array:
    """Read element by element from contiguous memory."""
    storage, out = x.reshape(-1), np.empty(size, x.dtype)
    for position in np.ndindex(*size):
        out[position] = storage[storage_offset + int(np.dot(position, stride) if size else 0)]
    return out


@reference("view_as_complex")
def view_as_complex(x: Array) -> Array:
    """Combine real and imaginary components without a product, which would propagate NaN to both."""
    out = np.empty(x.shape[:-1], np.complex128)
    out.real, out.imag = x[..., 0], x[..., 1]
    return out


# -- indices ----------------------------------------------------------------------------------------------------------
def _along(x: Array, dim: int, index: Array) -> tuple[Array, Index]:
    """Return the input with at least one dim, and the position in it of each element of the index."""
    line = x if x.ndim else x.reshape(1)
    wanted = index if index.ndim else index.reshape(1)
    positions = list(np.indices(wanted.shape))
    positions[dim] = wanted
    return line, tuple(positions)


@reference("gather")
def gather(x: Array, dim: int, index: Array) -> Array:
    """Read element by element."""
    line, positions = _along(x, dim, index)
    return np.asarray(line[positions]).reshape(index.shape)


def _corner(src: Array, index: Array) -> Array:
    """Return the part of the source that the index covers."""
    source = src if src.ndim else src.reshape(1)
    shape = index.shape or (1,)
    return source[tuple(slice(0, n) for n in shape)]


@reference("scatter_add")
def scatter_add(x: Array, dim: int, index: Array, src: Array) -> Array:
    """Add the elements sequentially."""
    line, positions = _along(x.copy(), dim, index)
    np.add.at(line, positions, _corner(src, index))
    return line.reshape(x.shape)


@reference("scatter_src")
def scatter_src(x: Array, dim: int, index: Array, src: Array) -> Array:
    """Write the elements sequentially in C order, so that the last write wins."""
    line, positions = _along(x.copy(), dim, index)
    for value, *position in zip(_corner(src, index).flat, *(p.flat for p in positions), strict=True):
        line[tuple(position)] = value
    return line.reshape(x.shape)


@reference("index_select")
def index_select(x: Array, dim: int, index: Array) -> Array:
    """Call NumPy's ``take``."""
    return np.take(x, index.reshape(-1), dim) if x.ndim else x


@reference("index_add")
def index_add(x: Array, dim: int, index: Array, source: Array) -> Array:
    """Add slice by slice."""
    out = (x if x.ndim else x.reshape(1)).copy()
    given = source if source.ndim else source.reshape(1)
    for position, target in enumerate(index.reshape(-1)):
        out.swapaxes(0, dim)[target] += given.swapaxes(0, dim)[position]
    return out.reshape(x.shape)


def _whole(indices: Sequence[Array | None]) -> Index:
    return tuple(slice(None) if i is None else i for i in indices)


@reference("index")
def index(x: Array, indices: Sequence[Array | None]) -> Any:
    """Index with NumPy's rules, which are the same: separated index arrays put their dims first."""
    return x[_whole(indices)]


@reference("index_put")
def index_put(x: Array, indices: Sequence[Array | None], values: Array, accumulate: bool = False) -> Array:
    """Write element by element, to positions that are read from an array of flat indices."""
    out = x.copy().reshape(-1)
    positions = np.arange(x.size).reshape(x.shape)[_whole(indices)]
    for position, value in zip(positions.flat, np.broadcast_to(values, positions.shape).flat, strict=True):
        out[position] = out[position] + value if accumulate else value
    return out.reshape(x.shape)


@reference("masked_select")
def masked_select(x: Array, mask: Array) -> Array:
    """Broadcast both arrays and select."""
    shape = np.broadcast_shapes(x.shape, mask.shape)
    return np.asarray(np.broadcast_to(x, shape)[np.broadcast_to(mask, shape)]).reshape(-1)


@reference("embedding")
def embedding(weight: Array, indices: Array, padding_idx: int = -1, scale_grad_by_freq: bool = False) -> Array:
    """Select the rows; the other arguments only affect the gradient."""
    return weight[indices]


@reference("scatter_planes")
def scatter_planes(x: Array, index: Array, size: int, distinct: bool) -> Array:
    """Add the elements sequentially, plane by plane."""
    out = np.zeros((*x.shape[:-1], size), x.dtype)
    for lead in np.ndindex(*x.shape[:-1]):
        np.add.at(out[lead], index[lead], x[lead])
    return out


@reference("put_planes")
def put_planes(x: Array, index: Array, size: int) -> Array:
    """Assign the elements sequentially, plane by plane."""
    out = np.zeros((*x.shape[:-1], size), x.dtype)
    for lead in np.ndindex(*x.shape[:-1]):
        for place, value in zip(index[lead], x[lead], strict=True):
            out[lead][place] = value
    return out
