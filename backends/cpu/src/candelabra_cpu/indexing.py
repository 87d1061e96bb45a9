"""Reading and writing by index arrays.

Indices are int64. Every kernel checks bounds: NumPy does where negative indices count back (``index``, ``index_put``),
the others refuse them here, as PyTorch does. Additions at repeated places happen in order of the index, in float32 for
half types.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from candelabra_cpu.quiet import quiet

HALVES = ("float16", "bfloat16")
WIDE = 64
"""From so many columns on, rows are added one by one in Python."""


def _within(index: Any, size: int) -> None:
    """Refuse indices outside ``[0, size)``."""
    if index.size <= 8:
        for place in index.reshape(-1).tolist():
            if not 0 <= place < size:
                raise IndexError("index out of range")
    # Read as unsigned, what is negative is large: one look serves both bounds.
    elif np.maximum.reduce(index.view(np.uint64), None) >= size:
        raise IndexError("index out of range")


def _accumulator(x: Any) -> Any:
    """A contiguous copy to add into: in float32 for half types."""
    return x.astype(np.float32 if x.dtype.name in HALVES else x.dtype, order="C", copy=True)


def _add_rows(work: Any, rows: Any, values: Any) -> None:
    """``work[rows[i]] += values[i]`` in order of i, for ``work`` (R, K), ``rows`` (n,) and ``values`` (n, K)."""
    if not values.size:
        return
    if work.shape[1] == 1:
        np.add.at(work[:, 0], rows, values[:, 0].astype(work.dtype, copy=False))  # one-dimensional: the fast path
        return
    if work.shape[1] >= WIDE:
        wide = values.astype(work.dtype, copy=False)
        for place, row in zip(rows.tolist(), range(len(rows))):
            work[place] += wide[row]
        return
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    sums = np.add.reduceat(values[order].astype(work.dtype, copy=False), starts, axis=0, dtype=work.dtype)
    work[ordered[starts]] += sums


# -- along one dim ----------------------------------------------------------------------------------------------------
def gather(x: Any, dim: int, index: Any) -> Any:
    """Values picked along ``dim``; bounds checked."""
    if not x.ndim or not index.ndim:
        _within(index, prod(x.shape))
        return x.reshape(-1).take(index.reshape(-1)).reshape(index.shape)
    _within(index, x.shape[dim])
    if not index.size:  # of whatever rank, as in PyTorch
        return np.empty(index.shape, x.dtype)
    if x.ndim == 1 == index.ndim:
        return x.take(index)
    return x.reshape(-1).take(_places(x, dim, index))


def _corner(x: Any, dim: int, index: Any) -> Any:
    """The part of ``x`` that an index of smaller sizes ranges over."""
    if x.ndim != index.ndim or any(i > s for d, (s, i) in enumerate(zip(x.shape, index.shape)) if d != dim):
        raise ValueError("the index is larger than the array, or has other dims")
    return x[tuple(slice(None) if d == dim else slice(0, n) for d, n in enumerate(index.shape))]


def _places(x: Any, dim: int, index: Any) -> Any:
    """Where ``index`` points to, in ``x`` as if flattened in C order: shape of ``index``."""
    _within(index, x.shape[dim])
    _corner(x, dim, index)
    step = stride = 1
    rest: Any = 0
    for d in range(x.ndim - 1, -1, -1):
        if d == dim:
            stride = step
        elif index.shape[d] > 1:
            rest = rest + (np.arange(index.shape[d]) * step).reshape([-1 if i == d else 1 for i in range(x.ndim)])
        step *= x.shape[d]
    scaled = index if stride == 1 else index * stride
    return scaled + rest if x.ndim > 1 else scaled


def _scatter_parts(x: Any, index: Any, src: Any) -> tuple[Any, Any, Any]:
    """The arguments with at least one dim, ``src`` cut to the index's sizes."""
    if not (x.ndim and index.ndim and src.ndim):
        x, index, src = x.reshape(-1), index.reshape(-1), src.reshape(-1)
    if src.ndim != index.ndim or any(i > s for s, i in zip(src.shape, index.shape)):
        raise ValueError("the index is larger than the source")
    return x, index, src[tuple(slice(0, n) for n in index.shape)]


def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    """Added in order, half types in float32."""
    shape = x.shape
    if not index.size:
        return x.copy(order="C")
    x, index, src = _scatter_parts(x, index, src)
    out = _accumulator(x)
    _add_rows(out.reshape(-1, 1), _places(x, dim, index).reshape(-1), src.reshape(-1, 1))
    return out.astype(x.dtype, copy=False).reshape(shape)


def scatter_src(x: Any, dim: int, index: Any, src: Any) -> Any:
    """Put; the last write wins."""
    shape = x.shape
    if not index.size:
        return x.copy(order="C")
    x, index, src = _scatter_parts(x, index, src)
    out = x.copy(order="C")
    out.reshape(-1)[_places(x, dim, index)] = src
    return out.reshape(shape)


def index_select(x: Any, dim: int, index: Any) -> Any:
    """Slices along ``dim``."""
    if index.ndim > 1:
        raise ValueError("the index must be a vector")
    _within(index, x.shape[dim] if x.ndim else 1)
    if not x.ndim:
        if index.size != 1:
            raise ValueError("a 0-d array has one slice")
        return x.copy()
    return x.take(index.reshape(-1), axis=dim)


def index_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    """Slices added in order, half types in float32."""
    shape = x.shape
    if index.ndim > 1:
        raise ValueError("the index must be a vector")
    rows = index.reshape(-1)
    if not x.ndim:
        x, source = x.reshape(1), source.reshape(1)
    if source.shape != (*x.shape[:dim], rows.size, *x.shape[dim + 1 :]):
        raise ValueError("the source does not fit")
    _within(rows, x.shape[dim])
    work = _accumulator(np.moveaxis(x, dim, 0))
    flat = work.reshape(work.shape[0], prod(work.shape[1:]))
    _add_rows(flat, rows, np.moveaxis(source, dim, 0).reshape(rows.size, flat.shape[1]))
    return np.ascontiguousarray(np.moveaxis(work.astype(x.dtype, copy=False), 0, dim)).reshape(shape)


# -- index arrays for several dims ------------------------------------------------------------------------------------
Indices = Sequence[Any]


def _key(indices: Indices) -> tuple[Any, ...]:
    return tuple([slice(None) if i is None else i for i in indices])


def index(x: Any, indices: Indices) -> Any:
    """Advanced indexing; index dims are placed as ``advanced_shape`` says."""
    used = [d for d, i in enumerate(indices) if i is not None]
    if len(used) == 1:
        return x.take(indices[used[0]], axis=used[0])
    out = np.asarray(x[_key(indices)])
    # Where all indices are 0-d, or there is none, NumPy takes this for basic indexing and gives a view.
    return out.copy() if np.may_share_memory(out, x) else out


def index_put(x: Any, indices: Indices, values: Any, accumulate: bool) -> Any:
    """Put or added at index arrays, in a copy."""
    if accumulate:
        return _index_added(x, indices, values)
    out = x.copy(order="C")
    out[_key(indices)] = values
    return out


def index_put_(x: Any, indices: Indices, values: Any, accumulate: bool) -> Any:
    """Put or added at index arrays, in place."""
    if accumulate:
        x[...] = _index_added(x, indices, values)
    else:
        x[_key(indices)] = values.copy() if np.may_share_memory(x, values) else values
    return x


def _index_added(x: Any, indices: Indices, values: Any) -> Any:
    used = [d for d, i in enumerate(indices) if i is not None]
    if not used:
        return x + values
    kept = [d for d in range(x.ndim) if d not in used]
    picked = np.broadcast_arrays(*[indices[d] for d in used])
    rows: Any = 0
    for d, place in zip(used, picked):
        _within(place + x.shape[d] * (place < 0), x.shape[d])
        rows = rows * x.shape[d] + np.where(place < 0, place + x.shape[d], place)
    work = _accumulator(x.transpose(used + kept))
    flat = work.reshape(prod(x.shape[d] for d in used), prod(x.shape[d] for d in kept))
    # The index dims stand where the only run of indices stands, else in front: see advanced_shape().
    front = used[0] if used[-1] - used[0] + 1 == len(used) else 0
    rank = picked[0].ndim
    others = [x.shape[d] for d in kept]
    spread = np.broadcast_to(values, (*others[:front], *picked[0].shape, *others[front:]))
    spread = np.moveaxis(spread, range(front, front + rank), range(rank))
    _add_rows(flat, rows.reshape(-1), spread.reshape(rows.size, flat.shape[1]))
    back = np.argsort(used + kept)
    return np.ascontiguousarray(work.astype(x.dtype, copy=False).transpose(back))


def nonzero(x: Any) -> Any:
    """Indices of nonzero elements, one per row."""
    return np.argwhere(x)


def masked_select(x: Any, mask: Any) -> Any:
    """Elements where the mask holds."""
    if x.shape != mask.shape:
        x, mask = np.broadcast_arrays(x, mask)
    return x[mask]


# -- basic indices ----------------------------------------------------------------------------------------------------
def basic_index_adjoint(x: Any, shape: tuple[int, ...], index: tuple[Any, ...]) -> Any:
    """Zeros with ``x`` at ``[index]``."""
    out = np.zeros(shape, x.dtype)
    out[index] = x
    return out


def basic_index_scatter(x: Any, src: Any, index: tuple[Any, ...]) -> Any:
    """A copy with ``src`` at ``[index]``."""
    out = x.copy(order="C")
    out[index] = src
    return out


FUNCTIONS: dict[str, Any] = {
    "gather": gather, "scatter_add": scatter_add, "scatter_src": scatter_src, "index_select": index_select,
    "index_add": index_add, "index": index, "index_put": index_put, "nonzero": nonzero, "masked_select": masked_select,
    "basic_index_adjoint": basic_index_adjoint, "basic_index_scatter": basic_index_scatter,
}  # fmt: skip
KERNELS: dict[str, Any] = {
    **{name: quiet(function) for name, function in FUNCTIONS.items()},
    "index_put_": index_put_,
}
