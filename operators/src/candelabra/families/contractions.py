"""Contractions over chosen dims: ``tensordot``, ``kron``, ``chain_matmul``; ``einsum`` has a module of its own.

They are permutations and reshapes around one matrix product, so their derivatives are those of that product.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra.families.products import alike
from candelabra.fronts.forms import with_out
from candelabra.fronts.registry import front
from candelabra.operator.arguments import wrap_dim
from candelabra.operator.promotion import unpromoted
from candelabra.operator.record import operator
from candelabra.operator.rules import by, shape_of
from candelabra.ops.reductions import matmul

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


# -- tensordot --------------------------------------------------------------------------------------------------------
def _as_ints(dims: Any) -> Ints:
    return (int(dims),) if isinstance(dims, int) else tuple(int(d) for d in dims)


def _contracted(input: Tensor, other: Tensor, dims: Any) -> tuple[Ints, Ints]:
    """The dims of each tensor that are summed over, in pairs."""
    if hasattr(dims, "_payload"):
        dims = dims.tolist()
    a, b = shape_of(input), shape_of(other)
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(len(a), len(b)):
            raise RuntimeError(
                f"tensordot expects dims <= the number of dims of both tensors, {len(a)} and {len(b)}, but got "
                f"dims={dims}"
            )
        return tuple(range(len(a) - dims, len(a))), tuple(range(dims))
    if len(dims) != 2:
        raise RuntimeError(f"tensordot expects dims to be an int or two lists of ints, but got {len(dims)} entries")
    first, second = _as_ints(dims[0]), _as_ints(dims[1])
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    first = tuple(wrap_dim(d, len(a)) for d in first)
    second = tuple(wrap_dim(d, len(b)) for d in second)
    for found in (first, second):
        if len(set(found)) != len(found):
            twice = next(d for i, d in enumerate(found) if d in found[:i])
            raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return first, second


def _tensordot_shape(input: Tensor, other: Tensor, dims: Any) -> Ints:
    first, second = _contracted(input, other, dims)
    a, b = shape_of(input), shape_of(other)
    for i, j in zip(first, second, strict=True):
        if a[i] != b[j] and 1 not in (a[i], b[j]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a[i]} in dim {i} and second has size "
                f"{b[j]} in dim {j}"
            )
    return tuple(s for i, s in enumerate(a) if i not in first) + tuple(s for i, s in enumerate(b) if i not in second)


@operator(by(_tensordot_shape), promote=unpromoted, method=False)
def tensordot(input: Tensor, other: Tensor, dims: Any = 2) -> Tensor:
    """Sums of products over ``dims``: the last n dims of ``input`` with the first n of ``other``, or pairs of lists.

    The result has the remaining dims of ``input``, then those of ``other``. A dim of size 1 broadcasts.
    ``RuntimeError`` where sizes do not match or the dtypes differ.
    """
    shape = _tensordot_shape(input, other, dims)
    alike(input, other)
    first, second = _contracted(input, other, dims)
    a, b = shape_of(input), shape_of(other)
    # A dim of size 1 stands for equal elements: the other one is summed up before.
    short = [i for i, j in zip(first, second, strict=True) if a[i] != b[j] == 1]
    input = input.sum(tuple(short), True, dtype=input.dtype) if short else input
    short = [j for i, j in zip(first, second, strict=True) if b[j] != a[i] == 1]
    other = other.sum(tuple(short), True, dtype=other.dtype) if short else other
    a = shape_of(input)
    rows = tuple(i for i in range(len(a)) if i not in first)
    columns = tuple(j for j in range(len(b)) if j not in second)
    inside = prod([a[i] for i in first])
    left = input.permute(rows + first).reshape((prod([a[i] for i in rows]), inside))
    right = other.permute(second + columns).reshape((inside, prod([b[j] for j in columns])))
    return matmul(left, right).reshape(shape)


# -- kron -------------------------------------------------------------------------------------------------------------
@by
def _kron_shape(input: Tensor, other: Tensor) -> Ints:
    a, b = shape_of(input), shape_of(other)
    rank = max(len(a), len(b))
    return tuple(m * n for m, n in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True))


@operator(_kron_shape)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: every element of ``input`` times all of ``other``, laid out as blocks.

    The tensor of fewer dims gets dims of size 1 in front; sizes multiply. Dtypes promote.
    """
    a, b = shape_of(input), shape_of(other)
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    outside = [s for size in a for s in (size, 1)]
    inside = [s for size in b for s in (1, size)]
    return (input.reshape(outside) * other.reshape(inside)).reshape([m * n for m, n in zip(a, b, strict=True)])


# -- chains -----------------------------------------------------------------------------------------------------------
def chain_order(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each run ``(first, last)`` of matrices of sizes[i] × sizes[i + 1], for the fewest multiplications.

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


@front(method=False)
@with_out
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of matrices, multiplied in the order that takes the fewest operations.

    Takes the matrices one by one or as one list. ``RuntimeError`` for none, for other than 2-d tensors, and where the
    sizes do not fit.
    """
    chain: Sequence[Tensor] = matrices[0] if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)) else matrices
    if not chain:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for i, matrix in enumerate(chain):
        if not hasattr(matrix, "_payload"):
            raise TypeError(f"chain_matmul(): argument 'matrices' must be Tensors, but got {type(matrix).__name__}")
        if matrix.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {matrix.dim()}, expected 2 instead (matrix {i} of chain_matmul)")
    if len(chain) == 1:
        return chain[0]
    split = chain_order([chain[0].shape[0], *[m.shape[1] for m in chain]])
    return _multiplied(chain, split, 0, len(chain) - 1)


def _multiplied(chain: Sequence[Tensor], split: dict[tuple[int, int], int], first: int, last: int) -> Tensor:
    if first == last:
        return chain[first]
    middle = split[first, last]
    left, right = _multiplied(chain, split, first, middle), _multiplied(chain, split, middle + 1, last)
    alike(left, right)
    return matmul(left, right)
