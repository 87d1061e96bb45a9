"""LU factorization with partial pivoting, A = P L U.

For square A (de Hoog, Anderssen and Lukas, Differentiation of matrix functionals using triangular factorization, 2011):

    gA = P L⁻ᴴ [ tril(Lᴴ gL, -1) + triu(gU Uᴴ) ] U⁻ᴴ.

A wide matrix (A₁ | A₂) has U₂ = L⁻¹ Pᵀ A₂, which adds -gU₂ U₂ᴴ to L's part; a tall one is the same, transposed.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._layout import broadcast_shapes
from candelabra._operators.creation.matrices import new_eye
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.linalg import rules
from candelabra._operators.linalg.solvers import triangular_solution
from candelabra._operators.shapes.joining import cat
from candelabra._operators.value_checks import raise_if_nonzero
from candelabra._records.autocasting import Autocast
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra._records.promotion import index, same, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra.typing import Index, Tensor

Ints = tuple[int, ...]
BLOCK = 128
"""Rows and columns of the blocks in which tangents are computed."""
RULE = rules.matrices("linalg.lu_factor", rules.matrix, rules.diagonal, rules.scalar)
FLOATING = rules.floating("linalg.lu_factor")


class FactorsAndInfo(NamedTuple):
    """L below and U on and above the diagonal, the rows that were swapped (from 1), and the index (from 1) of a zero
    pivot.
    """

    LU: Tensor
    pivots: Tensor
    info: Tensor


class Factors(NamedTuple):
    """L below and U on and above the diagonal, and the rows that were swapped (from 1)."""

    LU: Tensor
    pivots: Tensor


class PLU(NamedTuple):
    """A permutation matrix, a unit lower triangle, an upper triangle."""

    P: Tensor
    L: Tensor
    U: Tensor


@operator(RULE, promote=FLOATING, result=(same, rules.info_dtype, rules.info_dtype), public=False, out=True)
def linalg_lu_factor_ex(A: Tensor, *, pivot: bool = True) -> FactorsAndInfo:
    """Return :func:`candelabra.linalg.lu_factor` with an int32 info per matrix: 0, or the index (from 1) of a zero
    pivot.
    """
    ...


@by
def _permutation_shape(pivots: Tensor, rows: int) -> Ints:
    return (*shape_of(pivots)[:-1], rows)


def _check_pivots(pivots: Tensor, rows: int) -> None:
    raise_if_nonzero(
        ((pivots < 1) | (pivots > rows)).any(),
        "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
        "Did you properly pass the result of lu_factor?",
        RuntimeError,
    )


@operator(_permutation_shape, check=_check_pivots, promote=unpromoted, result=index, public=False)
def pivots_to_permutation(pivots: Index, rows: int) -> Tensor:
    """Return the permutation (…, rows) that results from swapping rows i and ``pivots[i] - 1`` for each i in turn."""
    _check_pivots(pivots, rows)  # some devices report an index out of bounds later
    lead = pivots.shape[:-1]
    order = new_arange(pivots, 0, 1, rows).expand((*lead, rows)).clone()
    for i in range(pivots.shape[-1]):
        other = pivots.narrow(-1, i, 1) - 1
        upper, lower = order.narrow(-1, i, 1), order.gather(-1, other)
        order = order.scatter(-1, other, upper).scatter(-1, other * 0 + i, lower)
    return order


pivots_to_permutation.no_gradient("the result is an index")


def _rows(x: Tensor, order: Tensor) -> Tensor:
    """Return the rows of matrices in another order; both batches broadcast."""
    if order.ndim == 1:
        return x.index_select(-2, order)
    lead = broadcast_shapes(tuple(x.shape[:-2]), tuple(order.shape[:-1]))
    indices = order.unsqueeze(-1).expand((*lead, order.shape[-1], x.shape[-1]))
    return x.expand((*lead, *x.shape[-2:])).gather(-2, indices)


def _unpacked(LU: Tensor) -> tuple[Tensor, Tensor]:
    """Return L and U of the result of a factorization."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    lower = LU if m >= n else LU.narrow(-1, 0, k)
    upper = LU if m <= n else LU.narrow(-2, 0, k)
    return lower.tril(-1) + new_eye(LU, m, k), upper.triu()


def _lu_back(g_LU: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    m, n = LU.shape[-2:]
    k = min(m, n)
    L, U = _unpacked(LU)
    L1, U1 = L.narrow(-2, 0, k), U.narrow(-1, 0, k)
    g_L = (g_LU if m >= n else g_LU.narrow(-1, 0, k)).tril(-1)
    g_U = (g_LU if m <= n else g_LU.narrow(-2, 0, k)).triu()
    in_L = L1.mH @ g_L.narrow(-2, 0, k)
    in_U = g_U.narrow(-1, 0, k) @ U1.mH
    if m < n:
        in_L = in_L - g_U.narrow(-1, k, n - k) @ U.narrow(-1, k, n - k).mH
    if m > n:
        in_U = in_U - L.narrow(-2, k, m - k).mH @ g_L.narrow(-2, k, m - k)
    inner = in_L.tril(-1) + in_U.triu()
    if m > n:
        out = _right(U1, cat([triangular_solution(L1.mH, inner, True, True), g_L.narrow(-2, k, m - k)], -2))
    else:
        out = triangular_solution(L1.mH, _wide(inner, U1, g_U, k, n), True, True)
    back = pivots_to_permutation(pivots, m).argsort(-1)
    return _rows(out, back)


def _right(U: Tensor, x: Tensor, upper: bool = True) -> Tensor:
    """Return ``x U⁻ᴴ`` for a triangle U."""
    return triangular_solution(U, x.mH, upper, False).mH


def _wide(inner: Tensor, U1: Tensor, g_U: Tensor, k: int, n: int) -> Tensor:
    first = _right(U1, inner)
    return first if n == k else cat([first, g_U.narrow(-1, k, n - k)], -1)


linalg_lu_factor_ex.vjp(A=_lu_back)


def _lu_along(t_A: Tensor, LU: Tensor, pivots: Tensor) -> tuple[Tensor, None, None]:
    # From A₁₁ = L₁ U₁, A₁₂ = L₁ U₂ and A₂₁ = L₂ U₁:  dU₂ = L₁⁻¹ (dA₁₂ - dL₁ U₂)  and  dL₂ = (dA₂₁ - L₂ dU₁) U₁⁻¹.
    m, n = LU.shape[-2:]
    k = min(m, n)
    t = _rows(t_A, pivots_to_permutation(pivots, m))
    first = _part(LU, 0, k, 0, k)
    along = _square_along(_part(t, 0, k, 0, k), first)
    if m > n:
        rest = t.narrow(-2, k, m - k) - LU.narrow(-2, k, m - k) @ along.triu()
        along = cat([along, _right(first.mH, rest, False)], -2)
    if m < n:
        rest = t.narrow(-1, k, n - k) - along.tril(-1) @ LU.narrow(-1, k, n - k)
        along = cat([along, triangular_solution(first, rest, False, True)], -1)
    return along, None, None


def _part(x: Tensor, row: int, rows: int, column: int, columns: int) -> Tensor:
    """Return a block of matrices."""
    return x.narrow(-2, row, rows).narrow(-1, column, columns)


def _square_along(t: Tensor, LU: Tensor) -> Tensor:
    """Return the tangent of the factors of square matrices along ``t``, whose rows are in the order of the factors'.

    This is forward mode of the factorization by blocks: each of its products x y becomes dx y + x dy. So the tangent
    takes twice the arithmetic of the factors.
    """
    n = LU.shape[-1]
    rows: list[list[Tensor]] = []
    below: list[Tensor] = []
    for start in range(0, n or 1, BLOCK):
        size = min(BLOCK, n - start)
        end, rest = start + size, n - start - size
        block = _part(LU, start, size, start, size)
        along = _block_along(_part(t, 0, size, 0, size), block)
        if not rest:
            rows.append([along])
            break
        L, U = _part(LU, end, rest, start, size), _part(LU, start, size, end, rest)
        t_U = triangular_solution(block, _part(t, 0, size, size, rest) - along.tril(-1) @ U, False, True)
        t_L = _right(block.mH, _part(t, size, rest, 0, size) - L @ along.triu(), False)
        t = _part(t, size, rest, size, rest) - cat([t_L, L], -1) @ cat([U, t_U], -2)
        rows.append([along, t_U])
        below.append(t_L)
    return cat([cat([*_left_of(below, i), *row], -1) for i, row in enumerate(rows)], -2)


def _left_of(below: Sequence[Tensor], i: int) -> list[Tensor]:
    """Return the parts of row ``i`` of blocks in the columns below the diagonal blocks before it."""
    return [
        t.narrow(-2, (i - j - 1) * BLOCK, min(BLOCK, t.shape[-2] - (i - j - 1) * BLOCK))
        for j, t in enumerate(below[:i])
    ]


def _block_along(t: Tensor, LU: Tensor) -> Tensor:
    """Return the tangent of the factors of one block: with F = L⁻¹ dA U⁻¹, dL = L tril(F, -1) and dU = triu(F) U."""
    L, U = _unpacked(LU)
    inner = _right(U.mH, triangular_solution(L, t, False, True), False)
    return cat([L, inner.triu()], -1) @ cat([inner.tril(-1), U], -2)


linalg_lu_factor_ex.jvp(_lu_along)


@operator(RULE, promote=FLOATING, result=(same, rules.info_dtype, rules.info_dtype), public=False, out=True)
def linalg_lu_factor_checked(A: Tensor, *, pivot: bool = True, check_errors: bool) -> FactorsAndInfo:
    """Raise ``LinAlgError`` if ``check_errors`` and a pivot is zero."""
    factors = linalg_lu_factor_ex(A, pivot=pivot)
    if check_errors:
        rules.check_info(factors.info, "torch.linalg.lu_factor_ex", rules.ZERO_PIVOT)
    return factors


lu_factor_ex = overloads("linalg_lu_factor_ex", linalg_lu_factor_ex, linalg_lu_factor_checked, namespace="linalg")


@operator(
    rules.matrices("linalg.lu_factor", rules.matrix, rules.diagonal),
    promote=FLOATING,
    result=(same, rules.info_dtype),
    namespace="linalg",
    out=True,
)
def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> Factors:
    """Return ``(LU, pivots)`` of matrices (…, m, n): L below, U on and above the diagonal; the swapped rows, from 1, in
    int32.

    Raises ``LinAlgError`` if a pivot is zero.
    """
    factors = linalg_lu_factor_ex(A, pivot=pivot)
    rules.check_info(factors.info, "torch.linalg.lu_factor", rules.ZERO_PIVOT)
    return Factors(factors.LU, factors.pivots)


@public(out=True)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False) -> Factors | FactorsAndInfo:
    """Return ``(LU, pivots)``, with ``get_infos`` ``(LU, pivots, infos)``: see ``linalg.lu_factor_ex``.

    Raises ``RuntimeError`` if a pivot is zero, unless ``get_infos``.
    """
    if get_infos:
        return linalg_lu_factor_ex(A, pivot=pivot)
    factors = linalg_lu_factor_checked(A, pivot=pivot, check_errors=True)
    return Factors(factors.LU, factors.pivots)


# -- P, L and U -------------------------------------------------------------------------------------------------------
def _permutation_matrix(pivots: Tensor, LU: Tensor) -> Tensor:
    """Return P of A = P L U."""
    rows = LU.shape[-2]
    order = pivots_to_permutation(pivots, rows)
    return _rows(new_eye(LU, rows, rows).expand((*order.shape[:-1], rows, rows)), order).mT


def _factor_shapes(shape: Ints) -> tuple[Ints, Ints, Ints]:
    lead, (m, n), k = shape[:-2], shape[-2:], min(shape[-2:])
    return (*lead, m, m), (*lead, m, k), (*lead, k, n)


@by
def _lu_shapes(A: Tensor, pivot: bool) -> tuple[Ints, Ints, Ints]:
    rules.check_matrix("linalg.lu_factor", shape_of(A))
    return _factor_shapes(shape_of(A))


@operator(_lu_shapes, promote=FLOATING, namespace="linalg", out=True)
def linalg_lu(A: Tensor, *, pivot: bool = True) -> PLU:
    """Return ``(P, L, U)`` with A = P L U for matrices (…, m, n): P (…, m, m), L (…, m, k), U (…, k, n), k = min(m,
    n).
    """
    factors = linalg_lu_factor_ex(A, pivot=pivot)
    return PLU(_permutation_matrix(factors.pivots, factors.LU), *_unpacked(factors.LU))


@by
def _unpacked_shapes(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool, unpack_pivots: bool) -> Any:
    P, L, U = _factor_shapes(shape_of(LU_data))
    return P if unpack_pivots else (0,), L if unpack_data else (0,), U if unpack_data else (0,)


@operator(_unpacked_shapes, promote=rules.floating("torch.lu_unpack"), out=True)
def lu_unpack(LU_data: Tensor, LU_pivots: Index, unpack_data: bool = True, unpack_pivots: bool = True) -> PLU:
    """Return ``(P, L, U)`` for the result of ``linalg.lu_factor``; results that are not requested are empty."""
    lower, upper = _unpacked(LU_data) if unpack_data else (LU_data.new_empty((0,)), LU_data.new_empty((0,)))
    return PLU(_permutation_matrix(LU_pivots, LU_data) if unpack_pivots else LU_data.new_empty((0,)), lower, upper)


# -- systems ----------------------------------------------------------------------------------------------------------
@by
def _solution_shape(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Ints:
    return rules.check_system("linalg.lu_solve", shape_of(LU), shape_of(B), left)


@operator(_solution_shape, promote=rules.floating("linalg.lu_solve"), namespace="linalg")
def linalg_lu_solve(LU: Tensor, pivots: Index, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Return X with A X = B for the factors of A that ``lu_factor`` returns; ``left=False``: X A = B; ``adjoint``: Aᴴ X
    = B.
    """
    _solution_shape(linalg_lu_solve, (LU, pivots, B, left, adjoint))
    if not left:  # X A = B is Aᴴ Xᴴ = Bᴴ
        return linalg_lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH
    order = pivots_to_permutation(pivots, LU.shape[-2])
    if adjoint:
        half = triangular_solution(LU.mH, B, False, False)
        return _rows(triangular_solution(LU.mH, half, True, True), order.argsort(-1))
    half = triangular_solution(LU, _rows(B, order), False, True)
    return triangular_solution(LU, half, True, False)


@operator(
    by(lambda b, LU, pivots: rules.check_system("linalg.lu_solve", shape_of(LU), shape_of(b))),
    promote=rules.floating("linalg.lu_solve"),
    autocast=Autocast(host="float32"),
)
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Index) -> Tensor:
    """Return X with A X = ``b`` for the factors of A that ``linalg.lu_factor`` returns; see ``linalg.lu_solve``."""
    return linalg_lu_solve(LU_data, LU_pivots, b)
