"""LU factorization with partial pivoting, A = P L U.

For square A (de Hoog, Anderssen and Lukas, Differentiation of matrix functionals using triangular factorization, 2011):

    gA = P L⁻ᴴ [ tril(Lᴴ gL, -1) + triu(gU Uᴴ) ] U⁻ᴴ.

A wide matrix (A₁ | A₂) has U₂ = L⁻¹ Pᵀ A₂, which adds -gU₂ U₂ᴴ to L's part; a tall one is the same, transposed.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.linalg.requirements import (
    batch,
    check_fit,
    check_info,
    factored,
    info,
    least,
    matrices,
    whole,
    zero_pivot,
)
from candelabra._operators.linalg.triangular import identity, triangular_solution
from candelabra._operators.primitives.creation import arange
from candelabra._operators.shapes.joining import cat
from candelabra._records.callables import public
from candelabra._records.promotion import index, same, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Index, Tensor


class FactorsAndInfo(NamedTuple):
    """L below and U on and above the diagonal, the rows that were swapped (from 1), and the place of a zero pivot."""

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


@operator(
    matrices("linalg.lu_factor", whole, least, batch),
    promote=factored("linalg.lu_factor"),
    result=(same, info, info),
    public=False,
    method=False,
)
def linalg_lu_factor_ex(A: Tensor, pivot: bool) -> FactorsAndInfo:
    """The LU factorization as LAPACK leaves it; infos instead of errors."""
    ...


@by
def _permutation_shape(pivots: Tensor, rows: int) -> tuple[int, ...]:
    shape = shape_of(pivots)
    if pivots.numel() and (int(pivots.min()) < 1 or int(pivots.max()) > rows):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
            "Did you properly pass the result of lu_factor?"
        )
    return (*shape[:-1], rows)


@operator(_permutation_shape, promote=unpromoted, result=index, public=False, method=False)
def pivots_to_permutation(pivots: Index, rows: int) -> Tensor:
    """(…, rows): which row comes where when row i and row ``pivots[i] - 1`` are swapped in turn."""
    _permutation_shape(pivots_to_permutation, (pivots, rows))
    lead = pivots.shape[:-1]
    order = arange(0, 1, rows, dtype=pivots.dtype, device=pivots.device).expand((*lead, rows)).clone()
    for i in range(pivots.shape[-1]):
        other = pivots.narrow(-1, i, 1) - 1
        here, there = order.narrow(-1, i, 1), order.gather(-1, other)
        order = order.scatter(-1, other, here).scatter(-1, other * 0 + i, there)
    return order


pivots_to_permutation.no_gradient("the result is an index")


def _rows(x: Tensor, order: Tensor) -> Tensor:
    """The rows of matrices in another order; both batches broadcast."""
    if order.ndim == 1:
        return x.index_select(-2, order)
    from candelabra._layout import broadcast_shapes

    lead = broadcast_shapes(tuple(x.shape[:-2]), tuple(order.shape[:-1]))
    places = order.unsqueeze(-1).expand((*lead, order.shape[-1], x.shape[-1]))
    return x.expand((*lead, *x.shape[-2:])).gather(-2, places)


def _unpacked(LU: Tensor) -> tuple[Tensor, Tensor]:
    """L and U of what a factorization leaves."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    lower = LU if m >= n else LU.narrow(-1, 0, k)
    upper = LU if m <= n else LU.narrow(-2, 0, k)
    return lower.tril(-1) + identity(m, LU, k), upper.triu()


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


def _right(U: Tensor, x: Tensor) -> Tensor:
    """``x U⁻ᴴ``."""
    return triangular_solution(U, x.mH, True, False).mH


def _wide(inner: Tensor, U1: Tensor, g_U: Tensor, k: int, n: int) -> Tensor:
    first = _right(U1, inner)
    return first if n == k else cat([first, g_U.narrow(-1, k, n - k)], -1)


linalg_lu_factor_ex.vjp(A=_lu_back)


@public(namespace="linalg")
@takes_tensors("linalg_lu_factor_ex")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> FactorsAndInfo:
    """As :func:`lu_factor`, with an int32 info per matrix: 0, or which pivot is zero."""
    found = linalg_lu_factor_ex(A, pivot)
    if check_errors:
        check_info("torch.linalg.lu_factor_ex", found.info, zero_pivot)
    return delivered("linalg.lu_factor_ex", found, out)


@public(namespace="linalg")
@takes_tensors("linalg_lu_factor")
def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Factors:
    """``(LU, pivots)`` of matrices (…, m, n): L below, U on and above the diagonal; int32 rows swapped, from 1.

    ``LinAlgError`` where a pivot is zero.
    """
    found = linalg_lu_factor_ex(A, pivot)
    check_info("torch.linalg.lu_factor", found.info, zero_pivot)
    return delivered("linalg.lu_factor", Factors(found.LU, found.pivots), out)


def permutation_matrix(pivots: Tensor, like: Tensor) -> Tensor:
    """P of A = P L U."""
    rows = like.shape[-2]
    order = pivots_to_permutation(pivots, rows)
    return _rows(identity(rows, like).expand((*order.shape[:-1], rows, rows)), order).mT


@public(namespace="linalg")
@takes_tensors("linalg_lu")
def lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> PLU:
    """``(P, L, U)`` with A = P L U for matrices (…, m, n): P (…, m, m), L (…, m, k), U (…, k, n), k = min(m, n)."""
    found = linalg_lu_factor_ex(A, pivot)
    return delivered("linalg.lu", PLU(permutation_matrix(found.pivots, found.LU), *_unpacked(found.LU)), out)


@public
@takes_tensors("lu_unpack")
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None
) -> PLU:
    """``(P, L, U)`` of what ``linalg.lu_factor`` returns; parts that are not asked for come back empty."""
    if LU_pivots.dtype.name != "int32":
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this "
            "function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    none = LU_data.new_empty((0,))
    lower, upper = _unpacked(LU_data) if unpack_data else (none, none)
    permutation = permutation_matrix(LU_pivots, LU_data) if unpack_pivots else none
    return delivered("lu_unpack", PLU(permutation, lower, upper), out)


@public(namespace="linalg")
@takes_tensors("linalg_lu_solve")
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Tensor | None = None
) -> Tensor:
    """X with A X = B for A as ``lu_factor`` left it; ``left=False``: X A = B; ``adjoint``: Aᴴ in place of A."""
    if pivots.dtype.name != "int32":
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_fit("linalg.lu_solve", shape_of(LU), shape_of(B), left)
    if not left:  # X A = B is Aᴴ Xᴴ = Bᴴ
        return delivered("linalg.lu_solve", lu_solve(LU, pivots, B.mH, adjoint=not adjoint).mH, out)
    order = pivots_to_permutation(pivots, LU.shape[-2])
    if adjoint:
        half = triangular_solution(LU.mH, B, False, False)
        found = _rows(triangular_solution(LU.mH, half, True, True), order.argsort(-1))
    else:
        half = triangular_solution(LU, _rows(B, order), False, True)
        found = triangular_solution(LU, half, True, False)
    return delivered("linalg.lu_solve", found, out)
