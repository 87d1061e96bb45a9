"""Reading by index tensors. Bounds are checked by the kernels; what is wrong is raised at the next synchronisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra_clike.array import Shape, StridedArray
from candelabra_clike.faults import OutOfBounds
from candelabra_clike.kernels.copying import clone
from candelabra_clike.layouts import aligned, broadcast
from candelabra_clike.templates.indexing import gathering
from candelabra_clike.templates.indexing.picking import Pick

OUT_OF_RANGE = "index out of range in self"
OF_DIM = "index {index} is out of bounds for dimension {dim} with size {size}"
GATHER = OutOfBounds("gather", RuntimeError, f"gather(): {OF_DIM}")
INDEX_SELECT = OutOfBounds("index_select", IndexError, f"index_select(): {OUT_OF_RANGE}: {OF_DIM}")
EMBEDDING = OutOfBounds("embedding", IndexError, OUT_OF_RANGE)
INDEX = OutOfBounds("index", IndexError, OF_DIM, wraps=True)


# -- along one dim ----------------------------------------------------------------------------------------------------
def with_dim(x: StridedArray) -> StridedArray:
    """A 0-d array as one of one element."""
    return x if x.shape else x.restrided((1,), (1,), x.offset)


def without(strides: Shape, dim: int) -> Shape:
    """Strides with a step of 0 along a dim."""
    return (*strides[:dim], 0, *strides[dim + 1 :])


def gather(x: StridedArray, dim: int, index: StridedArray) -> StridedArray:
    """Values picked along ``dim``, in the shape of ``index``."""
    out = x.engine.empty(index.shape, x.dtype)
    if not out.size:
        return out
    source, places = with_dim(x), with_dim(index)
    check_corner(source, dim, places)
    pick = Pick(places, places.strides, dim, source.shape[dim], source.strides[dim])
    gathering.gather(with_dim(out), source, without(source.strides, dim), [pick], GATHER)
    return out


def check_corner(x: StridedArray, dim: int, index: StridedArray) -> None:
    """Refuse an index that is larger than ``x`` along another dim, or has other dims; the core finds the words."""
    if len(x.shape) != len(index.shape) or any(n > s for d, (s, n) in enumerate(zip(x.shape, index.shape)) if d != dim):
        raise ValueError("the index is larger than the array, or has other dims")


def index_select(x: StridedArray, dim: int, index: StridedArray) -> StridedArray:
    """Slices along ``dim``, in the order of a vector of indices."""
    if len(index.shape) > 1 or (not x.shape and index.size != 1):
        raise ValueError("the index must be a vector, of one element for a 0-d array")
    source, places = with_dim(x), with_dim(index)
    shape = (*source.shape[:dim], places.size, *source.shape[dim + 1 :])
    out = x.engine.empty(shape if x.shape else (), x.dtype)
    _slices(with_dim(out), source, dim, places, INDEX_SELECT)
    return out


def _slices(out: StridedArray, x: StridedArray, dim: int, index: StridedArray, words: OutOfBounds) -> None:
    after = (0,) * (len(x.shape) - dim - 1)
    strides = (*x.strides[:dim], *(0,) * len(index.shape), *x.strides[dim + 1 :])
    pick = Pick(index, (0,) * dim + index.strides + after, dim, x.shape[dim], x.strides[dim])
    gathering.gather(out, x, strides, [pick], words)


def embedding(weight: StridedArray, indices: StridedArray, padding_idx: int, scale_grad_by_freq: bool) -> StridedArray:
    """The rows of a matrix that ``indices``, of any shape, name."""
    if len(weight.shape) != 2:
        raise ValueError("the weight must be a matrix")
    out = weight.engine.empty((*indices.shape, weight.shape[1]), weight.dtype)
    _slices(out, weight, 0, indices, EMBEDDING)
    return out


# -- index arrays for several dims ------------------------------------------------------------------------------------
class Places:
    """Where ``x[indices]`` lies: its shape, the strides of ``x`` along its dims, and the index arrays.

    ``front`` is the first of the ``rank`` dims that come from the index arrays: where the only run of indices stands, 0
    where there are several.
    """

    __slots__ = ("front", "picks", "rank", "shape", "strides")

    def __init__(self, x: StridedArray, indices: Sequence[StridedArray | None]) -> None:
        used = [d for d, index in enumerate(indices) if index is not None]
        arrays = [index for index in indices if index is not None]
        kept = [d for d in range(len(x.shape)) if d not in used]
        picked = broadcast([index.shape for index in arrays])
        front = used[0] if used[-1] - used[0] + 1 == len(used) else 0
        before, after = kept[:front], kept[front:]
        self.front, self.rank = front, len(picked)
        self.shape: Shape = (*[x.shape[d] for d in before], *picked, *[x.shape[d] for d in after])
        self.strides: Shape = (*[x.strides[d] for d in before], *(0,) * len(picked), *[x.strides[d] for d in after])
        self.picks = [
            Pick(
                index, (0,) * len(before) + aligned(index, picked) + (0,) * len(after), d, x.shape[d], x.strides[d]
            )
            for d, index in zip(used, arrays)
        ]  # fmt: skip


def index(x: StridedArray, indices: Sequence[StridedArray | None]) -> StridedArray:
    """Advanced indexing; negative indices count back."""
    if all(i is None for i in indices):
        return clone(x)
    places = Places(x, indices)
    out = x.engine.empty(places.shape, x.dtype)
    return gathering.gather(out, x, places.strides, places.picks, INDEX)


KERNELS: dict[str, Any] = {"gather": gather, "index_select": index_select, "embedding": embedding, "index": index}
