"""Joining tensors, and turning them round."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra import _geometry as geometry
from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import wrap_dim
from candelabra._operators.primitives.views import basic_index
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Dim, Dims, Tensor


@by
def _joined(tensors: Sequence[Tensor], dim: int) -> tuple[int, ...]:
    shapes = [shape_of(t) for t in tensors]
    for position, shape in enumerate(shapes):
        if not shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated")
    first = shapes[0]
    for position, shape in enumerate(shapes):
        if len(shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        for d, (a, b) in enumerate(zip(first, shape, strict=True)):
            if d != dim and a != b:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {dim}. Expected size {a} but got size {b} for "
                    f"tensor number {position} in the list."
                )
    total = 0
    for shape in shapes:
        total += shape[dim]
    return (*first[:dim], total, *first[dim + 1 :])


@operator(_joined, method=False, public=False)
def cat(tensors: Sequence[Tensor], dim: Dim = 0) -> Tensor:
    """The tensors one after another along ``dim``; all other sizes must agree."""
    ...


def _split(g: Tensor, tensors_spec: list[Any], dim: int) -> list[Tensor]:
    parts, start = [], 0
    for spec in tensors_spec:
        stop = start + spec.shape[dim]
        parts.append(basic_index(g, geometry.one_slice(g.shape, dim, start, stop)))
        start = stop
    return parts


cat.vjp(tensors=_split)


@operator(like_input, method=False, public=False)
def flip(input: Tensor, dims: Dims) -> Tensor:
    """The order along ``dims`` reversed, in a copy."""
    ...


flip.vjp(input=lambda g, dims: flip(g, dims))


@operator(like_input)
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Elements shifted along ``dims``, those that fall off coming back at the other end; None: as if flattened."""
    if dims is None:
        return roll(input.reshape(-1), shifts, 0).reshape(input.shape)
    shifts = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    dims = dims if isinstance(dims, (tuple, list)) else (dims,)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not input.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    out = input
    for shift, along in zip(shifts, dims, strict=True):
        dim = wrap_dim(along, input.ndim)
        size = out.shape[dim]
        k = shift % size if size else 0
        if k:
            out = cat([out.narrow(dim, size - k, k), out.narrow(dim, 0, size - k)], dim)
    return out if out is not input else input.clone()


@by
def _triangle(input: Tensor, diagonal: int) -> tuple[int, ...]:
    shape = shape_of(input)
    if len(shape) < 2:
        raise RuntimeError("tril/triu: input tensor must have at least 2 dimensions")
    return shape


@operator(_triangle, inplace=True)
def tril(input: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two dims, up to ``diagonal`` above the main one; zeros elsewhere."""
    ...


@operator(_triangle, inplace=True)
def triu(input: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two dims, from ``diagonal`` above the main one; zeros elsewhere."""
    ...


tril.vjp(input=lambda g, diagonal: tril(g, diagonal))
triu.vjp(input=lambda g, diagonal: triu(g, diagonal))
