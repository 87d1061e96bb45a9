"""Reading by index tensors. Kernels check bounds; the next synchronisation raises the error."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.kernels.copies import clone
from candelabra_clike.layouts import broadcast, broadcast_layout
from candelabra_clike.templates.elementwise.elementwise import MAX_PLANS
from candelabra_clike.templates.indexing import gather as gather_template
from candelabra_clike.templates.indexing.index_arrays import IndexedDim

OUT_OF_RANGE = "index out of range in self"
OF_DIM = "index {index} is out of bounds for dimension {dim} with size {size}"
GATHER = IndexOutOfBounds("gather", RuntimeError, f"gather(): {OF_DIM}")
INDEX_SELECT = IndexOutOfBounds("index_select", IndexError, f"index_select(): {OUT_OF_RANGE}: {OF_DIM}")
EMBEDDING = IndexOutOfBounds("embedding", IndexError, OUT_OF_RANGE)
INDEX = IndexOutOfBounds("index", IndexError, OF_DIM, wraps=True)


# -- along one dim ----------------------------------------------------------------------------------------------------
def at_least_1d(x: StridedArray) -> StridedArray:
    """Return a 0-d array as an array of one element."""
    return x if x.shape else x.restrided((1,), (1,), x.offset)


def zero_stride(strides: Shape, dim: int) -> Shape:
    """Return strides with 0 along a dim."""
    return (*strides[:dim], 0, *strides[dim + 1 :])


def gather(x: StridedArray, dim: int, index: StridedArray) -> StridedArray:
    """The elements that ``index`` selects along ``dim``."""
    out = x.engine.empty(index.shape, x.dtype)
    if not out.size:
        return out
    source, indices = at_least_1d(x), at_least_1d(index)
    check_index_shape(source, dim, indices)
    indexed = (IndexedDim(indices.strides, dim, source.shape[dim], source.strides[dim]),)
    gather_template.gather(at_least_1d(out), source, zero_stride(source.strides, dim), [indices], indexed, GATHER)
    return out


def check_index_shape(x: StridedArray, dim: int, index: StridedArray) -> None:
    """Raise ``ValueError`` for an index with other dims than ``x``, or one that is larger along another dim than
    ``dim``.
    """
    if len(x.shape) != len(index.shape) or any(n > s for d, (s, n) in enumerate(zip(x.shape, index.shape)) if d != dim):
        raise ValueError(
            f"an index of shape {index.shape} does not fit an input of shape {x.shape} along dim {dim}: "
            "it must have as many dims and must not be larger along the other dims"
        )


def index_select(x: StridedArray, dim: int, index: StridedArray) -> StridedArray:
    """Select slices along ``dim`` by a vector of indices."""
    if len(index.shape) > 1 or (not x.shape and index.size != 1):
        raise ValueError(f"the index must be a vector (of one element for a 0-d input), got shape {index.shape}")
    source, indices = at_least_1d(x), at_least_1d(index)
    shape = (*source.shape[:dim], indices.size, *source.shape[dim + 1 :])
    out = x.engine.empty(shape if x.shape else (), x.dtype)
    _gather_slices(at_least_1d(out), source, dim, indices, INDEX_SELECT)
    return out


def _gather_slices(out: StridedArray, x: StridedArray, dim: int, index: StridedArray, error: IndexOutOfBounds) -> None:
    after = (0,) * (len(x.shape) - dim - 1)
    strides = (*x.strides[:dim], *(0,) * len(index.shape), *x.strides[dim + 1 :])
    indexed = (IndexedDim((0,) * dim + index.strides + after, dim, x.shape[dim], x.strides[dim]),)
    gather_template.gather(out, x, strides, [index], indexed, error)


def embedding(weight: StridedArray, indices: StridedArray, padding_idx: int, scale_grad_by_freq: bool) -> StridedArray:
    """The rows of a matrix that ``indices``, of any shape, select."""
    if len(weight.shape) != 2:
        raise ValueError(f"embedding() expects a weight with 2 dims, got {len(weight.shape)}")
    out = weight.engine.empty((*indices.shape, weight.shape[1]), weight.dtype)
    _gather_slices(out, weight, 0, indices, EMBEDDING)
    return out


# -- index arrays for several dims ------------------------------------------------------------------------------------
Layout = tuple[Shape, Shape]
"""Shape and strides."""


class AdvancedIndex(NamedTuple):
    """The layout of ``x[indices]``: its shape, the strides of ``x`` along its dims, and the dims that are indexed.

    ``front`` is the first of the ``rank`` dims of the index: the position of adjacent index arrays, 0 if they are
    separated.
    """

    shape: Shape
    strides: Shape
    indexed: tuple[IndexedDim, ...]
    front: int
    rank: int


def advanced_index(x: StridedArray, indices: Sequence[StridedArray | None]) -> AdvancedIndex:
    """Return the layout of ``x[indices]``. At least one index is an array."""
    return _advanced_index(x.shape, x.strides, tuple([None if i is None else (i.shape, i.strides) for i in indices]))


@lru_cache(MAX_PLANS)
def _advanced_index(shape: Shape, strides: Shape, layouts: tuple[Layout | None, ...]) -> AdvancedIndex:
    used = [(d, layout) for d, layout in enumerate(layouts) if layout is not None]
    dims = [d for d, _ in used]
    kept = [d for d in range(len(shape)) if d not in dims]
    index_shape = broadcast([layout[0] for _, layout in used])
    front = dims[0] if dims[-1] - dims[0] + 1 == len(dims) else 0
    before, after = kept[:front], kept[front:]

    def placed(values: Shape, of_index: Shape) -> Shape:
        return (*[values[d] for d in before], *of_index, *[values[d] for d in after])

    zeros = (0,) * len(shape)
    indexed = tuple([
        IndexedDim(placed(zeros, broadcast_layout(*layout, index_shape)), d, shape[d], strides[d]) for d, layout in used
    ])  # fmt: skip
    return AdvancedIndex(
        placed(shape, index_shape), placed(strides, (0,) * len(index_shape)), indexed, front, len(index_shape)
    )


def index(x: StridedArray, indices: Sequence[StridedArray | None]) -> StridedArray:
    """Advanced indexing; negative indices count from the end."""
    arrays = [i for i in indices if i is not None]
    if not arrays:
        return clone(x)
    selected = advanced_index(x, indices)
    out = x.engine.empty(selected.shape, x.dtype)
    return gather_template.gather(out, x, selected.strides, arrays, selected.indexed, INDEX)


KERNELS: dict[str, Any] = {"gather": gather, "index_select": index_select, "embedding": embedding, "index": index}
