"""Products of chains of matrices, multiplied in the order with the fewest operations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.linalg.products.matmul import check_same_dtype, matmul
from candelabra._records.autocasting import Autocast
from candelabra._records.callables import public
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


def chain_order(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the index at which to split each run ``(first, last)`` of matrices of sizes[i] × sizes[i + 1], for the
    fewest multiplications.

    Source: the dynamic programme of Cormen et al., Introduction to Algorithms, section 15.2.
    """
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


def _multiplied(matrices: Sequence[Tensor]) -> Tensor:
    """Return the product of matrices with matching sizes, in the cheapest order."""
    split = chain_order([matrices[0].shape[0], *[m.shape[1] for m in matrices]])

    def product(first: int, last: int) -> Tensor:
        if first == last:
            return matrices[first]
        middle = split[first, last]
        return matmul(product(first, middle), product(middle + 1, last))

    return product(0, len(matrices) - 1)


@by
def _multi_dot_shape(tensors: Sequence[Tensor]) -> Ints:
    shapes, last = [shape_of(t) for t in tensors], len(tensors) - 1
    if not last:
        raise RuntimeError("multi_dot(): expected at least 2 tensors but got 1")
    for i, (tensor, shape) in enumerate(zip(tensors, shapes, strict=True)):
        if len(shape) != 2 and (i not in (0, last) or len(shape) != 1):
            kind = "1D or 2D" if i in (0, last) else "2D"
            position = {0: "the first tensor", last: "the last tensor"}.get(i, f"tensor {i}")
            raise RuntimeError(f"multi_dot(): {position} must be {kind} but got {len(shape)}D")
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {tensors[0].dtype.name} and "
                f"tensor {i} {tensor.dtype.name}"
            )
    for i, (a, b) in enumerate(pairwise(shapes)):
        if a[-1] != b[0]:
            a, b = a if len(a) > 1 else (1, *a), b if len(b) > 1 else (*b, 1)
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a)} and {list(b)} cannot be multiplied"
            )
    return (*shapes[0][:-1], *shapes[last][1:])


@operator(_multi_dot_shape, promote=unpromoted, namespace="linalg", autocast=Autocast("lower"))
def linalg_multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of two or more matrices, in the order with the fewest multiplications.

    The first and the last may be vectors: a row and a column.
    """
    shape = _multi_dot_shape(linalg_multi_dot, (tensors,))
    chain = list(tensors)
    chain[0] = chain[0].unsqueeze(0) if chain[0].ndim == 1 else chain[0]
    chain[-1] = chain[-1].unsqueeze(-1) if chain[-1].ndim == 1 else chain[-1]
    product = _multiplied(chain)
    return product if product.ndim == len(shape) else product.reshape(shape)


@public(method=False, out=True)
def chain_matmul(*matrices: Tensor | Sequence[Tensor]) -> Tensor:
    """Return the product of matrices, multiplied in the order with the fewest operations.

    Takes the matrices one by one or as one list. Raises ``RuntimeError`` for no matrices, for tensors that are not 2-d,
    and where the sizes do not fit.
    """
    chain: Sequence[Tensor] = matrices[0] if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)) else matrices  # type: ignore[assignment]
    if not chain:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for i, matrix in enumerate(chain):
        if not hasattr(matrix, "_payload"):
            raise TypeError(f"chain_matmul(): argument 'matrices' must be Tensors, but got {type(matrix).__name__}")
        if matrix.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.dim()}, expected 2 instead (matrix {i} of chain_matmul)")
        check_same_dtype(chain[0], matrix)
    return chain[0] if len(chain) == 1 else _multiplied(chain)
