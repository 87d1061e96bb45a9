"""Slices of a tensor along a dim: one (``select``), some (``narrow``), or all of them (``split``, ``unbind``).

An operator that returns a tuple whose length depends on the arguments is not a record but a public callable. All
results are views.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from candelabra import _geometry as geometry
from candelabra._annotations import TYPE_CHECKING
from candelabra._dispatch.deferring import views_of
from candelabra._geometry import Ints
from candelabra._keys import DEFERRED
from candelabra._layout import wrap_dim
from candelabra._operators.indexing.basic import basic_index
from candelabra._records.callables import public
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra._tensor import Tensor
from candelabra.errors import OutOfMemoryError

if TYPE_CHECKING:
    from candelabra.typing import Dim, Integer

Tensors = tuple[Tensor, ...]


# -- some slices ------------------------------------------------------------------------------------------------------
@by
def _selected(input: Tensor, dim: int, index: int) -> Ints:
    shape = shape_of(input)
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    if not -shape[dim] <= index < shape[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}")
    return (*shape[:dim], *shape[dim + 1 :])


@operator(_selected, view=True)
def select(input: Tensor, dim: Dim, index: Integer) -> Tensor:
    """Return a view of slice number ``index`` along ``dim``, without that dim. Raises ``IndexError`` if it is out of
    range.
    """
    shape = input._payload.shape
    if not shape or not -shape[dim] <= index < shape[dim]:
        _selected(select, (input, dim, index))  # raises the error
    return basic_index.canonical(input, (*[slice(0, size, 1) for size in shape[:dim]], index % shape[dim]))


@by
def _narrowed(input: Tensor, dim: int, start: int, length: int) -> Ints:
    shape = shape_of(input)
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    size = shape[dim]
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    first = start + size if start < 0 else start
    if first + length > size:
        raise RuntimeError(f"start ({first}) + length ({length}) exceeds dimension size ({size}).")
    return (*shape[:dim], length, *shape[dim + 1 :])


@operator(_narrowed, view=True)
def narrow(input: Tensor, dim: Dim, start: Integer, length: Integer) -> Tensor:
    """Return a view of ``length`` slices along ``dim``, starting at ``start``.

    Raises ``IndexError`` for a start and ``RuntimeError`` for a length out of range.
    """
    shape = input._payload.shape
    size = shape[dim] if shape else -1
    first = start + size if start < 0 else start
    if not 0 <= first <= first + length <= size:
        _narrowed(narrow, (input, dim, start, length))  # raises the error
    return basic_index.canonical(input, geometry.one_slice(shape, dim, first, first + length))


# -- all slices -------------------------------------------------------------------------------------------------------
@public
def unbind(input: Tensor, dim: int = 0) -> Tensors:
    """Return views of all slices along ``dim``, without that dim."""
    shape = input._payload.shape
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = wrap_dim(dim, len(shape))
    before = tuple([slice(0, size, 1) for size in shape[:d]])
    index = basic_index.canonical
    return tuple([index(input, (*before, i)) for i in range(shape[d])])


def split_views(input: Tensor, sizes: Sequence[int], dim: int) -> Tensors:
    """Return adjacent views of the given sizes along a canonical ``dim``."""
    before = tuple([slice(0, size, 1) for size in input._payload.shape[:dim]])
    index, views, start = basic_index.canonical, [], 0
    for size in sizes:
        views.append(index(input, (*before, slice(start, start + size, 1))))
        start += size
    return tuple(views)


def _equal_views(input: Tensor, step: int, dim: int) -> Tensors:
    """Return adjacent views of ``step`` slices along a canonical ``dim``; the last one may be smaller."""
    index, indices = basic_index.canonical, _indices_of_parts(tuple(input._payload.shape[: dim + 1]), step)
    if input._keys & DEFERRED:
        return views_of(basic_index, input, indices)
    return tuple([index(input, each) for each in indices])


@lru_cache(1024)
def _indices_of_parts(shape: tuple[int, ...], step: int) -> tuple[tuple[slice, ...], ...]:
    """Return the indices of adjacent parts of ``step`` slices along the last dim of a shape."""
    *before, size = shape
    whole = [slice(0, n, 1) for n in before]
    return tuple([(*whole, slice(start, min(start + step, size), 1)) for start in range(0, size or 1, step)])


@public
def split(
    tensor: Tensor,
    split_size_or_sections: int | Sequence[int] | None = None,
    dim: int = 0,
    *,
    split_size: int | Sequence[int] | None = None,
) -> Tensors:
    """Return views of the given size (the last may be smaller), or of the given sizes, along ``dim``.

    ``split_size`` is another name of ``split_size_or_sections``: that of PyTorch's method. Raises ``TypeError`` unless
    one of them is given.
    """
    if split_size_or_sections is None:
        split_size_or_sections, split_size = split_size, None
    if split_size_or_sections is None or split_size is not None:
        raise TypeError("split(): expected exactly one of the arguments 'split_size_or_sections' and 'split_size'")
    if not isinstance(split_size_or_sections, int):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    shape, step = tensor._payload.shape, split_size_or_sections
    d = wrap_dim(dim, len(shape))
    if not shape:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    size = shape[d]
    if step < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={step}")
    if step == 0 and size:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
    return _equal_views(tensor, step or 1, d)


@public(aliases=("unsafe_split_with_sizes",))
def split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> Tensors:
    """Return views of the given sizes along ``dim``, which they must sum to.

    ``unsafe_split_with_sizes`` is the same function: autograd records writes to the views.
    """
    d, sizes = wrap_dim(dim, input.ndim), list(split_sizes)
    if not input.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={sizes}"
        )
    size = input._payload.shape[d]
    if sum(sizes) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension {d}), "
            f"but got split_sizes={sizes}"
        )
    return split_views(input, sizes, d)


@public
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> Tensors:
    """Return :func:`split`: views, and autograd records writes to them."""
    return split(tensor, split_size, dim)


@public(aliases=("unsafe_chunk",))
def chunk(input: Tensor, chunks: int, dim: int = 0) -> Tensors:
    """Return at most ``chunks`` views along ``dim``, equal in size except the last. ``unsafe_chunk`` is the same
    function.
    """
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    shape = input._payload.shape
    d = wrap_dim(dim, len(shape))
    return _equal_views(input, max(1, -(-shape[d] // chunks)), d)


# -- NumPy's splits ---------------------------------------------------------------------------------------------------
@public
def tensor_split(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> Tensors:
    """Return views along ``dim``: a number of nearly equal size, or views that begin at the given indices."""
    if not input.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = wrap_dim(dim, input.ndim)
    size = input.shape[d]
    where = indices_or_sections
    if isinstance(where, Tensor):
        where = where.tolist()
    if isinstance(where, (float, str)):
        raise TypeError(
            "tensor_split(): argument 'indices_or_sections' must be int or tuple of ints, not " + type(where).__name__
        )
    if isinstance(where, int):
        if where <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {where}")
        if where >= 2**32:
            raise OutOfMemoryError(f"tensor_split(): {where} views need more memory than the host has")
        return split_views(input, [size // where + (i < size % where) for i in range(where)], d)
    bounds = [*[slice(None, i).indices(size)[1] for i in where], size]
    views, start = [], 0
    for stop in bounds:
        views.append(narrow(input, d, start, max(0, stop - start)))
        start = stop
    return tuple(views)


def _divided(input: Tensor, where: int | Sequence[int] | Tensor, dim: int, least: int, name: str) -> Tensors:
    if input.ndim < least:
        raise RuntimeError(
            f"{name} requires a tensor with at least {least} dimension, but got a tensor with {input.ndim} dimensions!"
        )
    size = input.shape[dim]
    if isinstance(where, int) and (where == 0 or size % where):
        raise RuntimeError(
            f"{name} attempted to split along dimension {dim}, but the size of the dimension {size} is not divisible "
            f"by the split_size {where}!"
        )
    return tensor_split(input, where, dim)


@public
def hsplit(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> Tensors:
    """Return views along the second dim (vectors: the first), of equal size or beginning at the given indices."""
    return _divided(input, indices_or_sections, 0 if input.ndim == 1 else 1, 1, "hsplit")


@public
def vsplit(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> Tensors:
    """Return views along the first dim of at least a matrix, of equal size or beginning at the given indices."""
    return _divided(input, indices_or_sections, 0, 2, "vsplit")


@public
def dsplit(input: Tensor, indices_or_sections: int | Sequence[int] | Tensor) -> Tensors:
    """Return views along the third dim, of equal size or beginning at the given indices."""
    return _divided(input, indices_or_sections, 2, 3, "dsplit")
