"""The Cholesky factorization, and solutions computed from it.

With A = L Lᴴ and Φ(X) the lower triangle with half the diagonal (Murray, Differentiation of the Cholesky decomposition,
2016):  gA = L⁻ᴴ sym(Φ(Lᴴ gL)) L⁻¹  and  dL = L Φ(L⁻¹ dA L⁻ᴴ).
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, NamedTuple
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.matrices import new_eye
from candelabra._operators.linalg import rules
from candelabra._operators.linalg.solvers import triangular_solution
from candelabra._operators.shapes.joining import cat
from candelabra._records.autocasting import Autocast
from candelabra._records.overloads import overloads
from candelabra._records.promotion import same
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor

BLOCK = 128
"""Rows and columns of the blocks in which tangents are computed."""
RULE = rules.square("linalg.cholesky", rules.matrix, rules.scalar)
FLOATING = rules.floating("linalg.cholesky")


class Cholesky(NamedTuple):
    """The factors, and per matrix 0 or the order of the first minor that is not positive."""

    L: Tensor
    info: Tensor


@operator(
    RULE, promote=FLOATING, result=(same, rules.info_dtype), public=False, out=True, autocast=Autocast(host="float32")
)
def linalg_cholesky_ex(input: Tensor, *, upper: bool = False) -> Cholesky:
    """Return the Cholesky factors and an int32 info per matrix: 0, or the order of the first minor that is not
    positive.

    ``upper`` selects the triangle that is read, and returned.
    """
    ...


def _cholesky_back(g_L: Tensor, L: Tensor, upper: bool) -> Tensor:
    if upper:  # L is U = Lᴴ
        L, g_L = L.mH, g_L.mH
    inner = L.mH @ g_L
    inner = (inner.tril() + inner.tril(-1).mH) * 0.5
    inner = triangular_solution(L.mH, inner, True, False)
    return triangular_solution(L.mH, inner.mH, True, False).mH


linalg_cholesky_ex.vjp(input=_cholesky_back)


def _cholesky_along(t_input: Tensor, L: Tensor, upper: bool) -> tuple[Tensor, None]:
    along = _lower_along((t_input + t_input.mH) * 0.5, L.mH if upper else L)
    return along.mH if upper else along, None


def _lower_along(t: Tensor, L: Tensor) -> Tensor:
    """Return the tangent of L along a Hermitian ``t``, by forward mode of the factorization by blocks.

    From A₂₁ = L₂ L₁ᴴ:  dL₂ = (dA₂₁ - L₂ dL₁ᴴ) L₁⁻ᴴ.  Each product x xᴴ becomes dx xᴴ + (dx xᴴ)ᴴ, so the tangent takes
    twice the arithmetic of the factor.
    """
    n = L.shape[-1]
    columns: list[Tensor] = []
    for start in range(0, n or 1, BLOCK):
        size = min(BLOCK, n - start)
        rest = n - start - size
        part = L.narrow(-1, start, size)
        first, below = part.narrow(-2, start, size), part.narrow(-2, start + size, rest)
        along = _block_along(t.narrow(-2, 0, size).narrow(-1, 0, size), first)
        column = [along]
        if start:
            column.insert(0, new_full(L, (*L.shape[:-2], start, size), 0))
        if rest:
            right = t.narrow(-2, size, rest).narrow(-1, 0, size) - below @ along.mH
            t_below = triangular_solution(first, right.mH, False, False).mH
            product = t_below @ below.mH
            t = t.narrow(-2, size, rest).narrow(-1, size, rest) - (product + product.mH)
            column.append(t_below)
        columns.append(cat(column, -2))
    return cat(columns, -1)


def _block_along(t: Tensor, L: Tensor) -> Tensor:
    """Return the tangent of one block, L Φ(L⁻¹ dA L⁻ᴴ)."""
    inner = triangular_solution(L, triangular_solution(L, t, False, False).mH, False, False)
    return L @ ((inner.tril() + inner.tril(-1)) * 0.5)


linalg_cholesky_ex.jvp(_cholesky_along)


@operator(RULE, promote=FLOATING, result=(same, rules.info_dtype), public=False, out=True)
def linalg_cholesky_checked(input: Tensor, *, upper: bool = False, check_errors: bool) -> Cholesky:
    """Raise ``LinAlgError`` if ``check_errors`` and a matrix is not positive-definite."""
    factors = linalg_cholesky_ex(input, upper=upper)
    if check_errors:
        rules.check_info(factors.info, "linalg.cholesky_ex", rules.NOT_POSITIVE_DEFINITE)
    return factors


cholesky_ex = overloads("linalg_cholesky_ex", linalg_cholesky_ex, linalg_cholesky_checked, namespace="linalg")


@operator(
    rules.square("linalg.cholesky", rules.matrix),
    promote=FLOATING,
    namespace="linalg",
    autocast=Autocast(host="float32"),
)
def linalg_cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """Return L, lower triangular with A = L Lᴴ (``upper``: U with A = Uᴴ U), for Hermitian positive-definite (…, n, n).

    Only one triangle is read. Raises ``LinAlgError`` if a matrix is not positive-definite.
    """
    factors = linalg_cholesky_ex(input, upper=upper)
    rules.check_info(factors.info, "linalg.cholesky", rules.NOT_POSITIVE_DEFINITE)
    return factors.L


@operator(rules.square("linalg.cholesky", rules.matrix), promote=FLOATING, autocast=Autocast(host="float32"))
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Return the Cholesky factors of Hermitian positive-definite matrices; see ``linalg.cholesky``.

    Raises ``LinAlgError`` if a matrix is not positive-definite.
    """
    factors = linalg_cholesky_ex(input, upper=upper)
    rules.check_info(factors.info, "cholesky", rules.NOT_POSITIVE_DEFINITE)
    return factors.L


@by
def _solution_shape(input: Tensor, input2: Tensor, upper: bool) -> tuple[int, ...]:
    for name, shape in (("b", shape_of(input)), ("u", shape_of(input2))):
        if len(shape) < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {len(shape)} dimensions instead")
    return rules.check_system("cholesky_solve", shape_of(input2), shape_of(input))


@operator(_solution_shape, promote=rules.floating("cholesky_solve"), autocast=Autocast(host="float32"))
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """Return X with A X = ``input``, where ``input2`` is A's Cholesky factor."""
    _solution_shape(cholesky_solve, (input, input2, upper))
    L = input2.mH if upper else input2
    half = triangular_solution(L, input, False, False)
    return triangular_solution(L.mH, half, True, False)


_inverse_shape = rules.square("cholesky_inverse", rules.matrix)


@operator(_inverse_shape, promote=rules.floating("cholesky_inverse"), autocast=Autocast(host="float32"))
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """Return A⁻¹, where ``input`` is A's Cholesky factor."""
    _inverse_shape(cholesky_inverse, (input,))
    L = input.mH if upper else input
    half = triangular_solution(L, new_eye(input, input.shape[-1], input.shape[-1]), False, False)
    return half.mH @ half
