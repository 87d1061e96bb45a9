"""Triangular systems, and the determinants' and factorizations' shared pieces."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.linalg.inversion import linalg_solve_ex
from candelabra._operators.linalg.requirements import check_fit, check_floating, factored
from candelabra._operators.primitives.creation import eye
from candelabra._records.callables import public
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def identity(n: int, like: Tensor, m: int | None = None) -> Tensor:
    """The n × n (or n × m) identity with the dtype and device of another tensor."""
    return eye(n, n if m is None else m, dtype=like.dtype, device=like.device)


@by
def _triangular_shape(A: Tensor, B: Tensor, *_: Any) -> tuple[int, ...]:
    return check_fit("linalg.solve_triangular", shape_of(A), shape_of(B), True)


@operator(_triangular_shape, promote=factored("linalg.solve_triangular"), public=False, method=False)
def triangular_solution(A: Tensor, B: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """X with A X = B, where only one triangle of A is read; a zero on the diagonal is divided by.

    The body is for devices without the routine: a general solver gets the triangle alone.
    """
    check_fit("linalg.solve_triangular", shape_of(A), shape_of(B), True)  # or the general solver would complain
    triangle = A.triu(int(unitriangular)) if upper else A.tril(-int(unitriangular))
    if unitriangular:
        triangle = triangle + identity(A.shape[-1], A)
    return linalg_solve_ex(triangle, B).result


def _triangular_back(
    needs: tuple[bool, bool], A: Tensor, out: Tensor, g: Tensor, upper: bool, unitriangular: bool
) -> tuple[Tensor | None, Tensor | None]:
    # As of any system; the gradient of A is that of the triangle that was read.
    to_b = triangular_solution(A.mH, g, not upper, unitriangular)
    if not needs[0]:
        return None, to_b
    to_a = -(to_b @ out.mH)
    return to_a.triu(int(unitriangular)) if upper else to_a.tril(-int(unitriangular)), to_b if needs[1] else None


triangular_solution.vjp(("A", "B"), _triangular_back)


def solved_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """:func:`solve_triangular` without its checks."""
    if left:
        return triangular_solution(A, B, upper, unitriangular)
    return triangular_solution(A.mT, B.mT, not upper, unitriangular).mT


@public(namespace="linalg")
@takes_tensors("linalg_solve_triangular")
def solve_triangular(
    A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Tensor | None = None
) -> Tensor:
    """X with A X = B (X A = B with ``left=False``) for triangular A (…, n, n) and B (…, n, k).

    Only the triangle that ``upper`` names is read, its diagonal taken as ones if ``unitriangular``.
    """
    check_floating("linalg.solve_triangular", A.dtype)
    check_fit("linalg.solve_triangular", shape_of(A), shape_of(B), left)
    found = solved_triangular(A, B, upper=upper, left=left, unitriangular=unitriangular)
    return delivered("linalg.solve_triangular", found, out)


class TriangularSolution(NamedTuple):
    """The solution, and a copy of the matrix."""

    solution: Tensor
    cloned_coefficient: Tensor


@public
@takes_tensors("triangular_solve")
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *, out: Any = None
) -> TriangularSolution:
    """``(X, copy of A)`` with A X = b (Aᵀ X = b if ``transpose``): the older form of ``linalg.solve_triangular``."""
    for name, value in (("b", b), ("A", A)):
        if value.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {value.ndim} "
                "dimensions instead"
            )
    lead = check_fit("triangular_solve", shape_of(A), shape_of(b), True)[:-2]
    matrix = A.expand((*lead, *A.shape[-2:])).clone()
    found = triangular_solution(A.mT if transpose else A, b, upper is not transpose, unitriangular)
    return delivered("triangular_solve", TriangularSolution(found, matrix), out)
