"""Diagonals of matrices, and matrices of diagonals."""

from __future__ import annotations

from candelabra._codegen.arguments import wrap_dim
from candelabra._operators.fronts.shaping import diagonal, reshape
from candelabra._operators.primitives import creation, strided
from candelabra._records.callables import public
from candelabra._tensor import Tensor


@public(out=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix, in a copy; of a vector the matrix that has it on its diagonal."""
    if input.ndim == 1:
        return diag_embed(input, diagonal)
    if input.ndim != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    return creation.clone(strided.diagonal(input, diagonal, 0, 1))


@public
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices (their dims ``dim1`` and ``dim2``) with the last dim of ``input`` on a diagonal, zeros elsewhere."""
    rank = input.ndim + 1
    first, second = wrap_dim(dim1, rank), wrap_dim(dim2, rank)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = input.shape[-1] + abs(offset)
    shape = list(input.shape[:-1])
    for d in sorted((first, second)):
        shape.insert(d, size)
    zeros = creation.full(tuple(shape), 0, dtype=input.dtype, device=input._instance)
    return strided.diagonal_scatter(zeros, input, offset, first, second)


@public
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with the flattened ``input`` on a diagonal."""
    return diag_embed(reshape(input, -1 if input.numel() else 0), offset)


@public
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    total: Tensor = diagonal(input).sum()
    return total
