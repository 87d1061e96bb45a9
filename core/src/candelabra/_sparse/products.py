"""Products of sparse matrices, from gathered rows and sums by index."""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._operators.searching.sorted_search import searchsorted
from candelabra._sparse.construction import summed
from candelabra._sparse.tensor import SparseTensor, assembled
from candelabra._tensor import Tensor


def joined(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Return all pairs (i, j) with ``left[i] == right[j]``, as two index tensors, in the order of i."""
    ordered, order = right.sort(stable=True)
    start = _search(ordered, left, "left")
    count = _search(ordered, left, "right") - start
    i = _positions(left).repeat_interleave(count)
    before = count.cumsum(0) - count
    j = _positions(i) - before[i] + start[i]
    return i, order[j]


def _search(ordered: Tensor, values: Tensor, side: str) -> Tensor:
    return searchsorted(ordered, values, side=side)


def _positions(like: Tensor) -> Tensor:
    return like.new_ones(like.shape[:1]).cumsum(0) - 1


def multiplied(input: Any, other: Any) -> Tensor:
    """Return ``input @ other``, where one or both are sparse matrices. Two sparse ones have a sparse product.

    A sparse batch of matrices takes a dense batch of the same size. Raises ``RuntimeError`` for other shapes, and for
    values with dense dims.
    """
    for operand in (input, other):
        if isinstance(operand, SparseTensor) and (operand.dense_dim() or operand.ndim < 2):
            raise RuntimeError(
                f"matmul(): a sparse operand must be a matrix or a batch of matrices without dense dims, got the shape "
                f"{list(operand.shape)} with {operand.dense_dim()} dense dims"
            )
    if input.shape[-1] != other.shape[-2 if other.ndim > 1 else 0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({_by(input.shape)} and {_by(other.shape)})")
    if input.dtype is not other.dtype:
        raise RuntimeError(f"expected mat1 and mat2 to have the same dtype, but got: {input.dtype} != {other.dtype}")
    if not isinstance(input, SparseTensor):
        if input.ndim == 1:
            return sparse_by_dense(other.t(), input)
        if other.ndim == 2 and input.ndim == 2:
            return sparse_by_dense(other.t(), input.t()).t()
    elif isinstance(other, SparseTensor):
        if input.ndim == other.ndim == 2:
            return sparse_by_sparse(input, other)
    elif input.ndim == 2 and other.ndim <= 2:
        return sparse_by_dense(input, other)
    elif input.ndim == other.ndim == 3 and input.shape[0] == other.shape[0]:
        return batch_by_dense(input, other)
    raise RuntimeError(
        f"matmul(): sparse operands of the shapes {list(input.shape)} and {list(other.shape)} are not supported; use "
        "matrices, or batches of three dims with the sparse one first"
    )


def _by(shape: Any) -> str:
    return "x".join(map(str, shape))


def sparse_by_dense(matrix: SparseTensor, other: Tensor) -> Tensor:
    """Return the product of a sparse matrix and a dense matrix or vector: sums of its rows, scaled by the values."""
    rows, columns = matrix._payload.indices.unbind(0)
    return _scaled_rows(rows, columns, matrix._payload.values, other, matrix.shape[0])


def _scaled_rows(rows: Tensor, columns: Tensor, values: Tensor, other: Tensor, count: int) -> Tensor:
    picked = other.index_select(0, columns)
    return summed(picked * (values if other.ndim == 1 else values.unsqueeze(1)), rows, count)


def batch_by_dense(batch: SparseTensor, other: Tensor) -> Tensor:
    """Return the products of a batch of sparse matrices (b, n, m) and a batch of dense ones (b, m, k)."""
    size, n, m = batch.shape
    which, rows, columns = batch._payload.indices.unbind(0)
    flat = other.reshape((size * m, other.shape[2]))
    out = _scaled_rows(which * n + rows, which * m + columns, batch._payload.values, flat, size * n)
    return out.reshape((size, n, other.shape[2]))


def sparse_by_sparse(left: SparseTensor, right: SparseTensor) -> Tensor:
    """Return the sparse product of two sparse matrices: the products of all elements that share the inner index."""
    rows, inner = left._payload.indices.unbind(0)
    outer, columns = right._payload.indices.unbind(0)
    i, j = joined(inner, outer)
    values = left._payload.values[i] * right._payload.values[j]
    indices = rows.new_zeros((2, i.shape[0]))
    indices[0], indices[1] = rows[i], columns[j]
    return assembled(indices, values, (left.shape[0], right.shape[1])).coalesce()
