"""Concatenation of tensors along a dim (``cat``), along a new dim (``stack``), as rows or columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra import _geometry as geometry
from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._geometry import Ints
from candelabra._layout import wrap_dim
from candelabra._operators.indexing.basic import basic_index
from candelabra._operators.shapes.padding import constant_pad_nd
from candelabra._operators.shapes.reshaping import reshape
from candelabra._operators.shapes.squeezing import in_shape, shape_1d, shape_2d, shape_3d, unsqueeze
from candelabra._records.autocasting import Autocast
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra._records.record import Operator
    from candelabra.typing import Dim, InsertedDim, JoinedTensors, Tensor


# -- along a dim ------------------------------------------------------------------------------------------------------
def joined_shape(shapes: Sequence[Ints], dim: int) -> Ints:
    """Return the shape of tensors concatenated along ``dim``. Raise ``RuntimeError`` if other sizes differ."""
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
    return (*first[:dim], sum([shape[dim] for shape in shapes]), *first[dim + 1 :])


@operator(
    by(lambda tensors, dim: joined_shape([shape_of(t) for t in tensors], dim)),
    method=False,
    aliases=("concat", "concatenate"),
    out="disjoint",
    autocast=Autocast(host="widest"),
)
def cat(tensors: JoinedTensors, dim: Dim = 0) -> Tensor:
    """Concatenate tensors along ``dim``; all other sizes must be equal. 1-d tensors without elements are ignored.

    Raises ``ValueError`` for no tensors, ``RuntimeError`` for sizes that differ and for 0-d tensors.
    """
    ...


def _cat_adjoint(g: Tensor, tensors_spec: list[Any], dim: int) -> list[Tensor]:
    gradients, start = [], 0
    for spec in tensors_spec:
        stop = start + spec.shape[dim]
        gradients.append(basic_index(g, geometry.one_slice(g.shape, dim, start, stop)))
        start = stop
    return gradients


cat.vjp(tensors=_cat_adjoint)


# -- along a new dim --------------------------------------------------------------------------------------------------
@by
def _stacked(tensors: Sequence[Tensor], dim: int) -> Ints:
    first = shape_of(tensors[0])
    for position, tensor in enumerate(tensors):
        if shape_of(tensor) != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
                f"{list(shape_of(tensor))} at entry {position}"
            )
    return (*first[:dim], len(tensors), *first[dim:])


@operator(_stacked, method=False, out="disjoint", autocast=Autocast(host="widest"))
def stack(tensors: Sequence[Tensor], dim: InsertedDim = 0) -> Tensor:
    """Join tensors of one shape along a new dim.

    Raises ``RuntimeError`` for no tensors and for shapes that differ.
    """
    first = tensors[0]._payload.shape
    for tensor in tensors:
        if tensor._payload.shape != first:
            _stacked(stack, (tensors, dim))  # raises the error
    insert = unsqueeze.canonical
    return cat.canonical([insert(t, dim) for t in tensors], dim)


# -- as rows, columns, layers -----------------------------------------------------------------------------------------
def _at_least(with_dims: Callable[[Ints], Ints], dim: int) -> Callable[[Operator[..., Any], tuple[Any, ...]], Ints]:
    """Return the rule for tensors concatenated along ``dim``, after ``with_dims`` has added dims to each."""
    return by(lambda tensors: joined_shape([with_dims(shape_of(t)) for t in tensors], dim))


@by
def _side_by_side(tensors: Sequence[Tensor]) -> Ints:
    shapes = [shape_1d(shape_of(t)) for t in tensors]
    return joined_shape(shapes, 0 if len(shapes[0]) == 1 else 1)


@operator(_side_by_side, method=False, out="disjoint")
def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate tensors horizontally: along the second dim, or along the first for vectors."""
    joined = [t if t._payload.shape else reshape(t, 1) for t in tensors]
    return cat.function(joined, 0 if joined[0].ndim == 1 else 1)


@operator(_at_least(shape_2d, 0), method=False, aliases=("row_stack",), out="disjoint")
def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate tensors vertically: along the first dim, with vectors as rows."""
    return cat([in_shape(t, shape_2d) for t in tensors], 0)


@operator(_at_least(shape_3d, 2), method=False, out="disjoint")
def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate tensors depthwise: along the third dim."""
    return cat([in_shape(t, shape_3d) for t in tensors], 2)


def _shape_of_columns(shape: Ints) -> Ints:
    return shape if len(shape) > 1 else (shape[0] if shape else 1, 1)


@operator(_at_least(_shape_of_columns, 1), method=False, out="disjoint")
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate tensors along the second dim, with vectors and numbers as columns."""
    return cat([in_shape(t, _shape_of_columns) for t in tensors], 1)


# -- in chunks --------------------------------------------------------------------------------------------------------
@by
def _chunked(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Ints:
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    shapes = [shape_of(t) for t in tensors]
    d = wrap_dim(dim, max([len(shape) for shape in shapes]))
    columns = 0
    for shape in shapes:
        if d >= len(shape):
            raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
        if 0 in shape:
            raise RuntimeError("_chunk_cat expects non-empty tensor")
        rest = -(-shape[d] // num_chunks)
        for size in shape[d + 1 :]:
            rest *= size
        columns += rest
    return (*shapes[0][:d], num_chunks, columns)


@operator(_chunked, method=False, out="disjoint")
def _chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Split each tensor into ``num_chunks`` chunks along ``dim``, padded with zeros, flatten and concatenate these by
    chunk.

    Raises ``RuntimeError`` for no chunks, empty tensors and a ``dim`` that one of them does not have.
    """
    d = len(_chunked(_chunk_cat, (tensors, dim, num_chunks))) - 2
    chunks = []
    for t in tensors:
        missing = -t.shape[d] % num_chunks
        padded = constant_pad_nd(t, [0, 0] * (t.ndim - 1 - d) + [0, missing]) if missing else t
        chunks.append(reshape(padded, (*t.shape[:d], num_chunks, -1)))
    return cat(chunks, d + 1)
