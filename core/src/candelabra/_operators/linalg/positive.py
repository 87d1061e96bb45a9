"""Cholesky's factorization and what is solved with it.

With A = L Lᴴ and Φ(X) the lower triangle with half the diagonal (Murray, Differentiation of the Cholesky decomposition,
2016):  gA = L⁻ᴴ sym(Φ(Lᴴ gL)) L⁻¹.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.linalg.requirements import (
    batch,
    check_fit,
    check_info,
    check_square,
    factored,
    info,
    not_positive,
    square,
    whole,
)
from candelabra._operators.linalg.triangular import identity, triangular_solution
from candelabra._records.callables import public
from candelabra._records.promotion import same
from candelabra._records.record import operator
from candelabra._records.rules import shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor


class Cholesky(NamedTuple):
    """The factors, and per matrix 0 or the order of the first minor that is not positive."""

    L: Tensor
    info: Tensor


@operator(
    square("linalg.cholesky", whole, batch),
    promote=factored("linalg.cholesky"),
    result=(same, info),
    public=False,
    method=False,
)
def linalg_cholesky_ex(input: Tensor, upper: bool) -> Cholesky:
    """The triangular factors of Hermitian positive-definite matrices, of which the same triangle is read."""
    ...


def _cholesky_back(g_L: Tensor, L: Tensor, upper: bool) -> Tensor:
    if upper:  # L is U = Lᴴ
        L, g_L = L.mH, g_L.mH
    inner = L.mH @ g_L
    inner = (inner.tril() + inner.tril(-1).mH) * 0.5
    inner = triangular_solution(L.mH, inner, True, False)
    return triangular_solution(L.mH, inner.mH, True, False).mH


linalg_cholesky_ex.vjp(input=_cholesky_back)


@public(namespace="linalg")
@takes_tensors("linalg_cholesky_ex")
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Cholesky:
    """The Cholesky factors and an int32 info per matrix: 0, or the order of the first minor that is not positive."""
    found = linalg_cholesky_ex(input, upper)
    if check_errors:
        check_info("linalg.cholesky_ex", found.info, not_positive)
    return delivered("linalg.cholesky_ex", found, out)


@public(namespace="linalg")
@takes_tensors("linalg_cholesky")
def cholesky(input: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """L, lower triangular with A = L Lᴴ (``upper``: U with A = Uᴴ U), for Hermitian positive-definite (…, n, n).

    One triangle is read. ``LinAlgError`` where a matrix is not positive-definite.
    """
    found = linalg_cholesky_ex(input, upper)
    check_info("linalg.cholesky", found.info, not_positive)
    return delivered("linalg.cholesky", found.L, out)


@public
@takes_tensors("cholesky_solve")
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """X with A X = ``input``, where ``input2`` is A's Cholesky factor."""
    for name, value in (("b", input), ("u", input2)):
        if value.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {value.ndim} dimensions instead")
    check_fit("cholesky_solve", shape_of(input2), shape_of(input), True)
    L = input2.mH if upper else input2
    half = triangular_solution(L, input, False, False)
    return delivered("cholesky_solve", triangular_solution(L.mH, half, True, False), out)


@public
@takes_tensors("cholesky_inverse")
def cholesky_inverse(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """A⁻¹, where ``input`` is A's Cholesky factor."""
    check_square("cholesky_inverse", shape_of(input))
    L = input.mH if upper else input
    half = triangular_solution(L, identity(input.shape[-1], input), False, False)
    return delivered("cholesky_inverse", half.mH @ half, out)
