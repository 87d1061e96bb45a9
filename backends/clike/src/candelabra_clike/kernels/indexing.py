"""Reading by index tensors. Kernels check bounds; the next synchronisation raises the error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.device_errors import IndexOutOfBounds
from candelabra_clike.kernels.copies import clone
from candelabra_clike.layouts import broadcast, broadcast_strides
from candelabra_clike.templates.indexing import gather as gather_template
from candelabra_clike.templates.indexing.index_arrays import IndexArray

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
    index_operand = IndexArray(indices, indices.strides, dim, source.shape[dim], source.strides[dim])
    gather_template.gather(at_least_1d(out), source, zero_stride(source.strides, dim), [index_operand], GATHER)
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
    index_operand = IndexArray(index, (0,) * dim + index.strides + after, dim, x.shape[dim], x.strides[dim])
    gather_template.gather(out, x, strides, [index_operand], error)


def embedding(weight: StridedArray, indices: StridedArray, padding_idx: int, scale_grad_by_freq: bool) -> StridedArray:
    """The rows of a matrix that ``indices``, of any shape, select."""
    if len(weight.shape) != 2:
        raise ValueError(f"embedding() expects a weight with 2 dims, got {len(weight.shape)}")
    out = weight.engine.empty((*indices.shape, weight.shape[1]), weight.dtype)
    _gather_slices(out, weight, 0, indices, EMBEDDING)
    return out


# -- index arrays for several dims ------------------------------------------------------------------------------------
class AdvancedIndex:
    """The layout of ``x[indices]``: its shape, the strides of ``x`` along its dims, and the index arrays.

    ``front`` is the first of the ``rank`` dims of the index: the position of adjacent index arrays, 0 if they are
    separated.
    """

    __slots__ = ("front", "index_operands", "rank", "shape", "strides")

    def __init__(self, x: StridedArray, indices: Sequence[StridedArray | None]) -> None:
        used = [d for d, index in enumerate(indices) if index is not None]
        arrays = [index for index in indices if index is not None]
        kept = [d for d in range(len(x.shape)) if d not in used]
        index_shape = broadcast([index.shape for index in arrays])
        front = used[0] if used[-1] - used[0] + 1 == len(used) else 0
        before, after = kept[:front], kept[front:]
        self.front, self.rank = front, len(index_shape)
        self.shape: Shape = (*[x.shape[d] for d in before], *index_shape, *[x.shape[d] for d in after])
        self.strides: Shape = (
            *[x.strides[d] for d in before],
            *(0,) * len(index_shape),
            *[x.strides[d] for d in after],
        )
        self.index_operands = [
            IndexArray(
                index, (0,) * len(before) + broadcast_strides(index, index_shape) + (0,) * len(after), d, x.shape[d],
                x.strides[d] ) for d, index in zip(used, arrays)
        ]  # fmt: skip


def index(x: StridedArray, indices: Sequence[StridedArray | None]) -> StridedArray:
    """Advanced indexing; negative indices count from the end."""
    if all(i is None for i in indices):
        return clone(x)
    selection = AdvancedIndex(x, indices)
    out = x.engine.empty(selection.shape, x.dtype)
    return gather_template.gather(out, x, selection.strides, selection.index_operands, INDEX)


KERNELS: dict[str, Any] = {"gather": gather, "index_select": index_select, "embedding": embedding, "index": index}
