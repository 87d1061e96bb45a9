"""Diagonals of matrices, and matrices with given diagonals."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._geometry import Geometry, Ints
from candelabra._operators.conversion.copies import clone, filled
from candelabra._operators.conversion.python_numbers import number_for
from candelabra._operators.creation.filled import new_full
from candelabra._operators.indexing.basic import replaced
from candelabra._operators.shapes.expanding import listed
from candelabra._operators.shapes.joining import cat
from candelabra._operators.shapes.reshaping import reshape
from candelabra._operators.shapes.splitting import narrow
from candelabra._operators.shapes.squeezing import in_shape, shape_2d
from candelabra._records.autocasting import Autocast
from candelabra._records.callables import public
from candelabra._records.promotion import accumulated, by_arguments, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, from_geometry, shape_of
from candelabra.dtypes import promote_types

if TYPE_CHECKING:
    from candelabra.typing import Dim, InsertedDim, Number, Tensor


def diagonal_shape(shape: Ints, offset: int, dim1: int, dim2: int) -> Ints:
    """Return the shape of a diagonal: all other dims, then its length."""
    if dim1 == dim2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = shape[dim1], shape[dim2]
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    return (*[size for d, size in enumerate(shape) if d not in (dim1, dim2)], length)


def _diagonal_geometry(shape: Ints, strides: Ints, start: int, offset: int, dim1: int, dim2: int) -> Geometry:
    result = diagonal_shape(shape, offset, dim1, dim2)
    if result[-1]:
        start += offset * strides[dim2] if offset >= 0 else -offset * strides[dim1]
    others = [step for d, step in enumerate(strides) if d not in (dim1, dim2)]
    return result, (*others, strides[dim1] + strides[dim2]), start


@operator(from_geometry, view=_diagonal_geometry)
def diagonal(input: Tensor, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1) -> Tensor:
    """Return the diagonal of two dims, ``offset`` above the main one, as the last dim of a view."""
    ...


@by
def _scattered(input: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> Ints:
    shape = shape_of(input)
    expected = diagonal_shape(shape, offset, dim1, dim2)
    if expected != shape_of(src):
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. src size = "
            f"{list(shape_of(src))}, slice size = {list(expected)}"
        )
    return shape


@operator(_scattered, promote=unpromoted, result=by_arguments, out="exact")
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: Dim = 0, dim2: Dim = 1) -> Tensor:
    """Return a copy of ``input`` with ``src``, cast to its dtype, on a diagonal; see :func:`diagonal`."""
    if input._instance.immutable:
        _scattered(diagonal_scatter, (input, src, offset, dim1, dim2))
        return replaced(input, src.to(input.dtype), diagonal, offset, dim1, dim2)
    out = clone.canonical(input)
    view = diagonal.canonical(out, offset, dim1, dim2)
    if view._payload.shape != src._payload.shape:
        _scattered(diagonal_scatter, (input, src, offset, dim1, dim2))  # raises the error
    view.copy_(src)
    return out


def _diagonal_adjoint(g: Tensor, input_spec: Any, offset: int, dim1: int, dim2: int) -> Tensor:
    return diagonal_scatter(new_full(g, input_spec.shape, 0), g, offset, dim1, dim2)


diagonal.vjp(input=_diagonal_adjoint)
diagonal.scattered(diagonal_scatter)
diagonal_scatter.vjp(
    input=lambda g, src_spec, offset, dim1, dim2: diagonal_scatter(
        g, diagonal(g, offset, dim1, dim2) * 0, offset, dim1, dim2
    ),
    src=lambda g, offset, dim1, dim2: diagonal(g, offset, dim1, dim2),
)


# -- diagonals of a matrix ---------------------------------------------------------------------------------------------
@by
def _embedded(input: Tensor, offset: int, dim1: int, dim2: int) -> Ints:
    shape = shape_of(input)
    if dim1 == dim2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = shape[-1] + abs(offset)
    result = list(shape[:-1])
    for d in sorted((dim1, dim2)):
        result.insert(d, size)
    return tuple(result)


@operator(_embedded)
def diag_embed(input: Tensor, offset: int = 0, dim1: InsertedDim = -2, dim2: InsertedDim = -1) -> Tensor:
    """Return matrices, in the dims ``dim1`` and ``dim2``, with the last dim of ``input`` on a diagonal and zeros
    elsewhere.
    """
    result: Ints = _embedded(diag_embed, (input, offset, dim1, dim2))
    return diagonal_scatter.canonical(new_full(input, result, 0), input, offset, dim1, dim2)


@by
def _of_diagonal(input: Tensor, diagonal: int) -> Ints:
    shape = shape_of(input)
    if len(shape) == 1:
        return (shape[0] + abs(diagonal),) * 2
    if len(shape) != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {len(shape)}D")
    return diagonal_shape(shape, diagonal, 0, 1)


_diagonal = diagonal
"""The operator, for functions with a parameter of the same name."""


@operator(_of_diagonal, out="disjoint")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of the diagonal of a matrix; for a vector, the matrix with the vector on its diagonal."""
    if input.ndim == 1:
        return diag_embed.canonical(input, diagonal, 0, 1)
    if input.ndim != 2:
        _of_diagonal(diag, (input, diagonal))  # raises the error
    return clone.canonical(_diagonal.canonical(input, diagonal, 0, 1))


@operator(by(lambda input, offset: (input.numel() + abs(offset),) * 2))
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return the matrix with the flattened ``input`` on a diagonal."""
    return diag_embed.canonical(reshape(input, input.numel()), offset, 0, 1)


@by
def _traced(input: Tensor) -> Ints:
    if len(shape_of(input)) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {len(shape_of(input))}")
    return ()


@operator(_traced, result=accumulated, autocast=Autocast(host="float32"))
def trace(input: Tensor) -> Tensor:
    """Return the sum of a matrix's diagonal."""
    if input.ndim != 2:
        _traced(trace, (input,))  # raises the error
    return diagonal.canonical(input, 0, 0, 1).sum()


# -- diagonals of several matrices, and in place -----------------------------------------------------------------------
@public(method=False)
def block_diag(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """Return a block diagonal matrix; vectors are treated as rows, numbers as 1 × 1 matrices.

    The dtypes promote. Raises ``RuntimeError`` for tensors of more than two dims.
    """
    matrices = listed(tensors)
    for number, t in enumerate(matrices):
        if t.ndim > 2:
            raise RuntimeError(
                f"block_diag: Input tensors must have 2 or fewer dimensions. Input {number} has {t.ndim} dimensions"
            )
    if not matrices:
        from candelabra._operators.creation.uninitialized import empty

        result: Tensor = empty((1, 0))
        return result
    common = matrices[0].dtype
    for t in matrices[1:]:
        common = promote_types(common, t.dtype)
    blocks = [in_shape(t, shape_2d).to(common) for t in matrices]
    width = sum([block.shape[1] for block in blocks])
    rows, start = [], 0
    for block in blocks:
        height, size = block.shape
        left, right = new_full(block, (height, start), 0), new_full(block, (height, width - start - size), 0)
        rows.append(cat([left, block, right], 1))
        start += size
    return cat(rows, 0)


@public(is_function=False)
def fill_diagonal_(input: Tensor, fill_value: Number, wrap: bool = False) -> Tensor:
    """Write a number to the main diagonal; ``wrap`` repeats the diagonal in matrices with more rows than columns.

    Raises ``RuntimeError`` for fewer than two dims, and for more than two of unequal size.
    """
    shape = tuple(input.shape)
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    value = number_for(fill_value, input.dtype)
    rows, columns = shape[0], shape[1]
    again = range(columns + 1, rows, columns + 1) if wrap and len(shape) == 2 else ()
    for first in (0, *again):
        line = narrow(input, 0, first, rows - first) if first else input
        for _ in shape[1:]:
            line = diagonal(line, 0, 0, line.ndim - 1)
        filled.form("inplace")(line, value)
    return input
