"""Inverses and linear systems.

With X = A⁻¹:        dX = -X dA X,            so gA = -Xᴴ g Xᴴ.
With A X = B:  dX = A⁻¹ (dB - dA X),  so gB = A⁻ᴴ g and gA = -gB Xᴴ.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.linalg.requirements import (
    batch,
    check_fit,
    check_info,
    check_matrix,
    check_square,
    factored,
    info,
    singular_inverse,
    singular_system,
    square,
    whole,
)
from candelabra._records.callables import public
from candelabra._records.promotion import same
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra.typing import Tensor


class Inverse(NamedTuple):
    """The inverses, and per matrix 0 or the place of the pivot that is zero."""

    inverse: Tensor
    info: Tensor


class Solution(NamedTuple):
    """The solutions, and per system 0 or the place of the pivot that is zero."""

    result: Tensor
    info: Tensor


@operator(
    square("linalg.inv", whole, batch), promote=factored("linalg.inv"), result=(same, info), public=False, method=False
)
def linalg_inv_ex(A: Tensor) -> Inverse:
    """The inverses of square matrices by LU factorization, and where a pivot was zero: nothing is raised."""
    ...


def _inverse_back(g_inverse: Tensor, inverse: Tensor) -> Tensor:
    turned = inverse.mH
    return -(turned @ g_inverse @ turned)


linalg_inv_ex.vjp(A=_inverse_back)


@public(namespace="linalg")
@takes_tensors("linalg_inv_ex")
def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Inverse:
    """The inverses of (…, n, n) matrices and an int32 info per matrix: 0, or which pivot is zero.

    ``check_errors`` raises ``LinAlgError`` instead of returning what division by zero gives.
    """
    found = linalg_inv_ex(A)
    if check_errors:
        check_info("linalg.inv_ex", found.info, singular_inverse)
    return delivered("linalg.inv_ex", found, out)


@public(namespace="linalg")
@takes_tensors("linalg_inv")
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverses of (…, n, n) matrices; ``LinAlgError`` where one is singular."""
    found = linalg_inv_ex(A)
    check_info("linalg.inv", found.info, singular_inverse)
    return delivered("linalg.inv", found.inverse, out)


@by
def _solution_shape(A: Tensor, B: Tensor) -> Any:
    shape = check_fit("linalg.solve", shape_of(A), shape_of(B), True)
    return shape, shape[:-2]


@operator(_solution_shape, promote=factored("linalg.solve"), result=(same, info), public=False, method=False)
def linalg_solve_ex(A: Tensor, B: Tensor) -> Solution:
    """X with A X = B for matrices (…, n, n) and (…, n, k), by LU factorization, and where a pivot was zero."""
    ...


def _solve_back(
    needs: tuple[bool, bool], A: Tensor, result: Tensor, g_result: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    to_b = linalg_solve_ex(A.mH, g_result).result
    return -(to_b @ result.mH) if needs[0] else None, to_b if needs[1] else None


linalg_solve_ex.vjp(("A", "B"), _solve_back)


def is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether B is a batch of vectors, by PyTorch's rule: one dim, or A's shape without its last."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])


def _solved(A: Tensor, B: Tensor, left: bool) -> Solution:
    check_square("linalg.solve", shape_of(A))
    vector = is_vector(A, B)
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    if vector:
        check_fit("linalg.solve", shape_of(A), (*shape_of(B), 1), True)
        found = linalg_solve_ex(A, B.unsqueeze(-1))
        return Solution(found.result.squeeze(-1), found.info)
    check_matrix("linalg.solve", shape_of(B), "B")
    if left:
        return linalg_solve_ex(A, B)
    check_fit("linalg.solve", shape_of(A), shape_of(B), False)
    found = linalg_solve_ex(A.mT, B.mT)
    return Solution(found.result.mT, found.info)


@public(namespace="linalg")
@takes_tensors("linalg_solve_ex")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Solution:
    """As :func:`solve`, with an int32 info per system: 0, or which pivot is zero."""
    found = _solved(A, B, left)
    if check_errors:
        check_info("torch.linalg.solve_ex", found.info, singular_system)
    return delivered("linalg.solve_ex", found, out)


@public(namespace="linalg")
@takes_tensors("linalg_solve")
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """X with A X = B (X A = B with ``left=False``) for A (…, n, n) and B (…, n, k), (…, n) or (n).

    ``LinAlgError`` where a matrix is singular.
    """
    found = _solved(A, B, left)
    check_info("torch.linalg.solve", found.info, singular_system)
    return delivered("linalg.solve", found.result, out)


@public(namespace="linalg")
@takes_tensors("linalg_tensorinv")
def tensorinv(input: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of ``tensordot`` over the first ``ind`` dims: as a matrix, inverted, its dims turned round."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    rows, columns = input.shape[:ind], input.shape[ind:]
    m, n = _product(rows), _product(columns)
    if m != n:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {n} "
            f"!= {m}"
        )
    return delivered("linalg.tensorinv", inv(input.reshape((m, n))).reshape((*columns, *rows)), out)


@public(namespace="linalg")
@takes_tensors("linalg_tensorsolve")
def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """X with ``tensordot(A, X, X.ndim) == B``; ``dims`` of A are moved to its end first."""
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))
    rows, columns = A.shape[: B.ndim], A.shape[B.ndim :]
    m, n = _product(rows), _product(columns)
    if m != n:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {n} != {m}"
        )
    found = solve(A.reshape((m, n)), B.reshape((m,)))
    return delivered("linalg.tensorsolve", found.reshape(tuple(columns)), out)


def _product(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total
