"""Tensors taken apart along a dim: ``tensor_split``, ``hsplit``, ``vsplit``, ``dsplit``."""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._codegen.arguments import wrap_dim
from candelabra._operators.fronts.joining import split
from candelabra._operators.fronts.shaping import narrow
from candelabra._records.callables import public
from candelabra._tensor import Tensor

Tensors = tuple[Tensor, ...]


@public
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> Tensors:
    """Views along ``dim``: so many of nearly equal size, or cut before the given indices, empty past the end."""
    if not input.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = wrap_dim(dim, input.ndim)
    size = input.shape[d]
    if isinstance(indices_or_sections, Tensor):
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, (float, str)):
        raise TypeError(
            "tensor_split(): argument 'indices_or_sections' must be int or tuple of ints, not "
            f"{type(indices_or_sections).__name__}"
        )
    if isinstance(indices_or_sections, int):
        count = indices_or_sections
        if count <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {count}")
        return split(input, [size // count + (i < size % count) for i in range(count)], d)
    bounds = [*[slice(None, i).indices(size)[1] for i in indices_or_sections], size]
    parts, start = [], 0
    for stop in bounds:
        parts.append(narrow(input, d, start, max(0, stop - start)))
        start = stop
    return tuple(parts)


def _divided(input: Tensor, where: Any, dim: int, least: int, name: str) -> Tensors:
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
def hsplit(input: Tensor, indices_or_sections: Any) -> Tensors:
    """Views along the second dim (vectors: the first), of equal size or cut before the given indices."""
    return _divided(input, indices_or_sections, 0 if input.ndim == 1 else 1, 1, "hsplit")


@public
def vsplit(input: Tensor, indices_or_sections: Any) -> Tensors:
    """Views along the first dim of at least a matrix, of equal size or cut before the given indices."""
    return _divided(input, indices_or_sections, 0, 2, "vsplit")


@public
def dsplit(input: Tensor, indices_or_sections: Any) -> Tensors:
    """Views along the third dim, of equal size or cut before the given indices."""
    return _divided(input, indices_or_sections, 2, 3, "dsplit")
