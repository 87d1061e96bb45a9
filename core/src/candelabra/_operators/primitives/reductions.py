"""The matrix product."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import broadcast_shapes
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@by
def _product_shape(input: Tensor, other: Tensor) -> tuple[int, ...]:
    a, b = shape_of(input), shape_of(other)
    if not a or not b:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {len(a)}D and {len(b)}D")
    left, right = (a if len(a) > 1 else (1, *a)), (b if len(b) > 1 else (*b, 1))
    if left[-1] != right[-2]:
        if len(a) == 1 and len(b) == 1:
            raise RuntimeError(
                f"inconsistent tensor size, expected tensor {list(a)} and src {list(b)} to have the same number of "
                f"elements, but got {a[0]} and {b[0]} elements respectively"
            )
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({left[-2]}x{left[-1]} and {right[-2]}x{right[-1]})"
        )
    batch = broadcast_shapes(left[:-2], right[:-2])
    return (*batch, *(left[-2:-1] if len(a) > 1 else ()), *(right[-1:] if len(b) > 1 else ()))


@operator(_product_shape)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product over the last two dims, batch dims broadcast; 1-d arguments are row and column vectors."""
    ...


def _matmul_input(g: Tensor, input_spec: Any, other: Tensor) -> Tensor:
    rank, other_rank = len(input_spec.shape), len(other.shape)
    if other_rank == 1:  # (…, n, k) @ (k)
        return g * other.conj() if rank == 1 else g.unsqueeze(-1) * other.conj()
    right = other.mH
    if rank == 1:
        return _summed(matmul(g.unsqueeze(-2), right).squeeze(-2), 1)
    return matmul(g, right)


def _matmul_other(g: Tensor, input: Tensor, other_spec: Any) -> Tensor:
    rank, other_rank = len(input.shape), len(other_spec.shape)
    if rank == 1:  # (k) @ (…, k, m)
        if other_rank == 1:
            return g * input.conj()
        return input.conj().unsqueeze(-1) * g.unsqueeze(-2)
    if other_rank == 1:
        return _summed((input.conj() * g.unsqueeze(-1)), 1)
    return matmul(input.mH, g)


def _summed(x: Tensor, rank: int) -> Tensor:
    lead = len(x.shape) - rank
    return x.sum(tuple(range(lead))) if lead else x


matmul.vjp(input=_matmul_input, other=_matmul_other)
