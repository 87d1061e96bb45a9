"""Gathering and scattering by index arrays.

Indices are int64. Every kernel checks bounds. NumPy checks those of ``index`` and ``index_put``, which count negative
indices from the end; the other kernels reject negative indices here, as PyTorch does. Values for a repeated index are
added in the order of the index, in float32 for half types.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from candelabra_cpu.numpy_kernels import numpy_kernel
from candelabra_cpu.precision import is_half


def _check_bounds(index: Any, size: int) -> None:
    """Raise ``IndexError`` unless every index is in ``[0, size)``."""
    if index.size <= 8:
        for position in index.reshape(-1).tolist():
            if not 0 <= position < size:
                raise IndexError(f"index out of range for a dim of size {size}")
    # A negative number is large when read as unsigned, so one comparison checks both bounds.
    elif np.maximum.reduce(index.view(np.uint64), None) >= size:
        raise IndexError(f"index out of range for a dim of size {size}")


def _accumulator(x: Any) -> Any:
    """Return a contiguous copy to accumulate into: float32 for half types."""
    return x.astype(np.float32 if is_half(x) else x.dtype, order="C", copy=True)


def _add_rows(work: Any, rows: Any, values: Any) -> None:
    """Perform ``work[rows[i]] += values[i]`` in order of i; ``work`` is (R, K), ``rows`` (n,), ``values`` (n, K)."""
    width = work.shape[1]
    flat = rows if width == 1 else rows[:, None] * width + np.arange(width)
    # NumPy's fast loops of add.at() are for one dim.
    np.add.at(work.reshape(-1), flat.reshape(-1), values.astype(work.dtype, copy=False).reshape(-1))


# -- along one dim ----------------------------------------------------------------------------------------------------
def gather(x: Any, dim: int, index: Any) -> Any:
    """The elements that ``index`` selects along ``dim``."""
    if not x.ndim or not index.ndim:
        _check_bounds(index, prod(x.shape))
        return x.reshape(-1).take(index.reshape(-1)).reshape(index.shape)
    _check_bounds(index, x.shape[dim])
    if not index.size:  # an empty index may have any rank, as in PyTorch
        return np.empty(index.shape, x.dtype)
    if x.ndim == 1 == index.ndim:
        return x.take(index)
    return x.reshape(-1).take(_flat_index(x, dim, index))


def _crop_to_index(x: Any, dim: int, index: Any) -> Any:
    """Return the part of ``x`` that an index with smaller sizes covers."""
    if x.ndim != index.ndim or any(i > s for d, (s, i) in enumerate(zip(x.shape, index.shape)) if d != dim):
        raise ValueError(
            f"an index of shape {index.shape} does not fit an input of shape {x.shape} along dim {dim}: "
            "it must have as many dims and must not be larger along the other dims"
        )
    return x[tuple(slice(None) if d == dim else slice(0, n) for d, n in enumerate(index.shape))]


def _flat_index(x: Any, dim: int, index: Any) -> Any:
    """Return the C-order index of every element of ``x`` that ``index`` selects, in the shape of ``index``."""
    _check_bounds(index, x.shape[dim])
    _crop_to_index(x, dim, index)
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


def _prepare_scatter(x: Any, index: Any, src: Any) -> tuple[Any, Any, Any]:
    """Return the arguments with at least one dim, and ``src`` cropped to the sizes of the index."""
    if not (x.ndim and index.ndim and src.ndim):
        x, index, src = x.reshape(-1), index.reshape(-1), src.reshape(-1)
    if src.ndim != index.ndim or any(i > s for s, i in zip(src.shape, index.shape)):
        raise ValueError(f"an index of shape {index.shape} is larger than the source of shape {src.shape}")
    return x, index, src[tuple(slice(0, n) for n in index.shape)]


def scatter_add(x: Any, dim: int, index: Any, src: Any) -> Any:
    """Add the elements of ``src`` in order, half types in float32."""
    shape = x.shape
    if not index.size:
        return x.copy(order="C")
    x, index, src = _prepare_scatter(x, index, src)
    out = _accumulator(x)
    _add_rows(out.reshape(-1, 1), _flat_index(x, dim, index).reshape(-1), src.reshape(-1, 1))
    return out.astype(x.dtype, copy=False).reshape(shape)


def scatter_src(x: Any, dim: int, index: Any, src: Any) -> Any:
    """Write the elements of ``src``; the last write wins."""
    shape = x.shape
    if not index.size:
        return x.copy(order="C")
    x, index, src = _prepare_scatter(x, index, src)
    out = x.copy(order="C")
    out.reshape(-1)[_flat_index(x, dim, index)] = src
    return out.reshape(shape)


def index_select(x: Any, dim: int, index: Any) -> Any:
    """Select slices along ``dim``."""
    if index.ndim > 1:
        raise ValueError(f"the index must be a vector, got {index.ndim} dims")
    _check_bounds(index, x.shape[dim] if x.ndim else 1)
    if not x.ndim:
        if index.size != 1:
            raise ValueError(f"the index of a 0-d input must have one element, got {index.size}")
        return x.copy()
    return x.take(index.reshape(-1), axis=dim)


def index_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    """Add slices in order, half types in float32."""
    shape = x.shape
    if index.ndim > 1:
        raise ValueError(f"the index must be a vector, got {index.ndim} dims")
    rows = index.reshape(-1)
    if not x.ndim:
        x, source = x.reshape(1), source.reshape(1)
    if source.shape != (*x.shape[:dim], rows.size, *x.shape[dim + 1 :]):
        raise ValueError(f"a source of shape {source.shape} does not fit an input of shape {shape} along dim {dim}")
    _check_bounds(rows, x.shape[dim])
    work = _accumulator(np.moveaxis(x, dim, 0))
    flat = work.reshape(work.shape[0], prod(work.shape[1:]))
    _add_rows(flat, rows, np.moveaxis(source, dim, 0).reshape(rows.size, flat.shape[1]))
    return np.ascontiguousarray(np.moveaxis(work.astype(x.dtype, copy=False), 0, dim)).reshape(shape)


# -- index arrays for several dims ------------------------------------------------------------------------------------
Indices = Sequence[Any]


def _numpy_index(indices: Indices) -> tuple[Any, ...]:
    return tuple([slice(None) if i is None else i for i in indices])


def index(x: Any, indices: Indices) -> Any:
    """Advanced indexing; ``advanced_shape`` in the core defines the position of the index dims."""
    used = [d for d, i in enumerate(indices) if i is not None]
    if len(used) == 1:
        return x.take(indices[used[0]], axis=used[0])
    out = np.asarray(x[_numpy_index(indices)])
    # If all indices are 0-d, or there is none, NumPy performs basic indexing and returns a view.
    return out.copy() if np.may_share_memory(out, x) else out


def index_put(x: Any, indices: Indices, values: Any, accumulate: bool) -> Any:
    """Write or add values at index arrays in a copy."""
    if accumulate:
        return _index_accumulate(x, indices, values)
    out = x.copy(order="C")
    out[_numpy_index(indices)] = values
    return out


def index_put_(x: Any, indices: Indices, values: Any, accumulate: bool) -> Any:
    """Write or add values at index arrays in place."""
    if accumulate:
        x[...] = _index_accumulate(x, indices, values)
    else:
        x[_numpy_index(indices)] = values.copy() if np.may_share_memory(x, values) else values
    return x


def _index_accumulate(x: Any, indices: Indices, values: Any) -> Any:
    indexed = [d for d, i in enumerate(indices) if i is not None]
    if not indexed:
        return x + values
    others = [d for d in range(x.ndim) if d not in indexed]
    arrays = np.broadcast_arrays(*[indices[d] for d in indexed])
    rows: Any = 0
    for d, array in zip(indexed, arrays):
        _check_bounds(array + x.shape[d] * (array < 0), x.shape[d])
        rows = rows * x.shape[d] + np.where(array < 0, array + x.shape[d], array)
    work = _accumulator(x.transpose(indexed + others))
    flat = work.reshape(prod(x.shape[d] for d in indexed), prod(x.shape[d] for d in others))
    # The dims of the index replace adjacent indexed dims; otherwise they come first. See advanced_shape().
    front = indexed[0] if indexed[-1] - indexed[0] + 1 == len(indexed) else 0
    rank = arrays[0].ndim
    sizes = [x.shape[d] for d in others]
    expanded = np.broadcast_to(values, (*sizes[:front], *arrays[0].shape, *sizes[front:]))
    expanded = np.moveaxis(expanded, range(front, front + rank), range(rank))
    _add_rows(flat, rows.reshape(-1), expanded.reshape(rows.size, flat.shape[1]))
    inverse = np.argsort(indexed + others)
    return np.ascontiguousarray(work.astype(x.dtype, copy=False).transpose(inverse))


def nonzero(x: Any) -> Any:
    """The indices of the nonzero elements, one row each."""
    return np.argwhere(x)


def masked_select(x: Any, mask: Any) -> Any:
    """The elements where the mask is true."""
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
    **{name: numpy_kernel(function) for name, function in FUNCTIONS.items()},
    "index_put_": index_put_,
}
