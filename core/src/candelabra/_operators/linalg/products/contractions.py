"""Contractions over given dims: ``tensordot`` and ``kron``. For ``einsum``, see the module ``einsum``.

They are composed of matrix products and reshapes, and so are their derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import wrap_dim
from candelabra._operators.linalg.products.einsum import contracted
from candelabra._operators.linalg.products.einsum_notation import Equation
from candelabra._records.autocasting import Autocast
from candelabra._records.overloads import overloads
from candelabra._records.promotion import unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


# -- tensordot --------------------------------------------------------------------------------------------------------
def _paired(dims: Any) -> int | tuple[Ints, Ints]:
    """Return ``dims`` as a number or as two tuples, so that it can be a key of cached plans."""
    if isinstance(dims, int):
        return dims
    if len(dims) != 2:
        raise RuntimeError(f"tensordot expects dims to be an int or two lists of ints, but got {len(dims)} entries")
    first, second = ((d,) if isinstance(d, int) else tuple(d) for d in dims)
    return first, second


@lru_cache(maxsize=512)
def _tensordot_equation(a: Ints, b: Ints, dims: int | tuple[Ints, Ints]) -> Equation:
    """Return the contraction as an equation of ``einsum``; the labels of the summed dims occur in both operands."""
    first, second = _contracted(len(a), len(b), dims)
    for i, j in zip(first, second, strict=True):
        if a[i] != b[j] and 1 not in (a[i], b[j]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a[i]} in dim {i} and second has size "
                f"{b[j]} in dim {j}"
            )
    left = tuple(range(len(a)))
    right = tuple(first[second.index(j)] if j in second else len(a) + j for j in range(len(b)))
    output = tuple(k for k in left if k not in first) + tuple(k for k in right if k >= len(a))
    return Equation((left, right), output, True)


def _contracted(m: int, n: int, dims: int | tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Return the dims of each tensor that are summed, in pairs."""
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(m, n):
            raise RuntimeError(
                f"tensordot expects dims <= the number of dims of both tensors, {m} and {n}, but got dims={dims}"
            )
        return tuple(range(m - dims, m)), tuple(range(dims))
    first, second = dims
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length")
    first, second = tuple(wrap_dim(d, m) for d in first), tuple(wrap_dim(d, n) for d in second)
    for side in (first, second):
        if len(set(side)) != len(side):
            twice = next(d for i, d in enumerate(side) if d in side[:i])
            raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return first, second


@by
def _tensordot_shape(a: Tensor, b: Tensor, dims: Any) -> Ints:
    first, second = shape_of(a), shape_of(b)
    return tuple((first + second)[k] for k in _tensordot_equation(first, second, _paired(dims)).output)


@operator(_tensordot_shape, promote=unpromoted, public=False, autocast=Autocast("widest", "lower"))
def tensordot(a: Tensor, b: Tensor, dims: int | Sequence[Any] = 2) -> Tensor:
    """Return sums of products over ``dims``: the last n dims of ``a`` with the first n of ``b``, or pairs of lists.

    The result has the remaining dims of ``a``, then those of ``b``. A dim of size 1 broadcasts. Raises ``RuntimeError``
    if sizes do not match or the dtypes differ.
    """
    equation = _tensordot_equation(shape_of(a), shape_of(b), _paired(dims))
    out = contracted((a, b), equation)
    return out if out.dtype is a.dtype else out.to(a.dtype)  # a sum of integers over a broadcast dim is int64


def tensordot_tensor(a: Tensor, b: Tensor, dims: Tensor) -> Tensor:
    """Accept a tensor of integers for ``dims``."""
    return tensordot(a, b, dims.tolist())


tensordot_overloads = overloads("tensordot", tensordot, tensordot_tensor, method=False)


# -- kron -------------------------------------------------------------------------------------------------------------
@by
def _kron_shape(input: Tensor, other: Tensor) -> Ints:
    a, b = shape_of(input), shape_of(other)
    rank = max(len(a), len(b))
    return tuple(m * n for m, n in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True))


@operator(_kron_shape)
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product: a block matrix with each element of ``input`` times ``other``.

    The tensor of fewer dims gets leading dims of size 1; sizes multiply. Dtypes promote.
    """
    a, b = shape_of(input), shape_of(other)
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    outside = [s for size in a for s in (size, 1)]
    inside = [s for size in b for s in (1, size)]
    return (input.reshape(outside) * other.reshape(inside)).reshape([m * n for m, n in zip(a, b, strict=True)])
