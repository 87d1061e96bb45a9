"""Linear algebra as users call it, computed from the references of its operators; norms, ranks and powers by
definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.elimination import (
    Array,
    adjoint,
    cholesky,
    determinant,
    inverse,
    ldl_factor,
    logarithmic_determinant,
    lu_factor,
    permutation,
    solve,
    solved,
    stacked,
    triangular,
)
from candelabra_conformance.references.products import vector_norm
from candelabra_conformance.references.reflections import qr
from candelabra_conformance.references.registry import reference, references
from candelabra_conformance.references.spectra import eigh, least_squares, pseudo_inverse, svd, svdvals

# -- other forms and names --------------------------------------------------------------------------------------------
references(
    {
        "linalg_inv_checked": lambda A, check_errors: inverse(A),
        "linalg_inv": lambda A: inverse(A)[0],
        "inverse": lambda input: inverse(input)[0],
        "linalg_cholesky_checked": lambda input, upper, check_errors: cholesky(input, upper),
        "linalg_cholesky": lambda input, upper: cholesky(input, upper)[0],
        "cholesky": lambda input, upper: cholesky(input, upper)[0],
        "linalg_lu_factor_checked": lambda A, pivot, check_errors: lu_factor(A, pivot),
        "linalg_lu_factor": lambda A, pivot: lu_factor(A, pivot)[:2],
        "det": determinant,
        "slogdet": logarithmic_determinant,
        "linalg_qr_mode": qr,
        "qr": lambda input, some: qr(input, "reduced" if some else "complete"),
    },
    extended=True,
)
references({
    "linalg_ldl_factor_checked": lambda input, hermitian, check_errors: ldl_factor(input, hermitian),
    "linalg_ldl_factor": lambda input, hermitian: ldl_factor(input, hermitian)[:2],
    "linalg_svd_driver": lambda A, full_matrices, driver: svd(A, full_matrices),
    "linalg_svdvals_driver": lambda A, driver: svdvals(A),
    "linalg_eigh_triangle": lambda input, UPLO: eigh(input, UPLO.upper()),
    "linalg_eigvalsh_triangle": lambda input, UPLO: eigh(input, UPLO.upper())[0],
})  # fmt: skip


@reference("svd")
def older_svd(input: Array, some: bool, compute_uv: bool) -> tuple[Array, ...]:
    """Return the right vectors as columns, or zeros if the vectors are not requested."""
    U, S, Vh = svd(input, not (some and compute_uv))
    return (U, S, adjoint(Vh)) if compute_uv else (U * 0, S, adjoint(Vh) * 0)


# -- determinants -----------------------------------------------------------------------------------------------------
@reference("logdet", extended=True)
def logdet(input: Array) -> Array:
    """Return NaN for negative determinants, and complex logarithms for complex ones."""
    sign, size = logarithmic_determinant(input)
    if input.dtype.kind == "c":
        return np.log(sign) + size
    return np.where(sign < 0, np.nan, size)


@reference("linalg_det_backward", extended=True)
def determinant_backward(grad: Array, A: Array, out: Array) -> Array:
    """Return the cofactors: each is the determinant of the matrix without a row and a column."""

    def cofactors(a: Array) -> tuple[Array]:
        n = len(a)
        found = np.zeros_like(a)
        for i, j in np.ndindex(n, n):
            rest = np.delete(np.delete(a, i, 0), j, 1)
            found[i, j] = (-1) ** (i + j) * determinant(rest)
        return (np.conj(found),)

    return grad[..., None, None] * stacked(cofactors, A)[0]


# -- systems ----------------------------------------------------------------------------------------------------------
def _is_vector(A: Array, B: Array) -> bool:
    return B.ndim == 1 or (A.ndim == B.ndim + 1 and B.shape == A.shape[:-1])


def _transposed(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


@reference("linalg_solve_ex_system", extended=True)
def system(A: Array, B: Array, left: bool, check_errors: bool) -> tuple[Array, ...]:
    """Solve for a vector as a column, and X A = B as the transposed system."""
    if _is_vector(A, B):
        X, info = solve(A, B[..., None])
        return X[..., 0], info
    X, info = solve(A, B) if left else solve(_transposed(A), _transposed(B))
    return (X if left else _transposed(X)), info


@reference("linalg_solve", extended=True)
def solution(A: Array, B: Array, left: bool) -> Array:
    """Return the solutions only."""
    return system(A, B, left, False)[0]


@reference("linalg_tensorinv", extended=True)
def tensorinv(input: Array, ind: int) -> Array:
    """Invert the matrix with its dims exchanged."""
    rows, columns = input.shape[:ind], input.shape[ind:]
    n = int(np.prod(rows))
    return np.asarray(inverse(input.reshape(n, n))[0].reshape(*columns, *rows))


@reference("linalg_tensorsolve", extended=True)
def tensorsolve(A: Array, B: Array, dims: Any) -> Array:
    """Solve a system of matrices, after moving the dims."""
    if dims is not None:
        A = np.moveaxis(A, dims, range(A.ndim - len(dims), A.ndim))
    n = B.size
    return np.asarray(solved(A.reshape(n, n), B.reshape(n, 1)).reshape(A.shape[B.ndim :]))


@reference("linalg_solve_triangular", extended=True)
def solve_triangular(A: Array, B: Array, upper: bool, left: bool, unitriangular: bool) -> Array:
    """Solve X A = B as the transposed system."""
    if left:
        return triangular(A, B, upper, unitriangular)
    return _transposed(triangular(_transposed(A), _transposed(B), not upper, unitriangular))


@reference("triangular_solve", extended=True)
def triangular_solve(b: Array, A: Array, upper: bool, transpose: bool, unitriangular: bool) -> tuple[Array, ...]:
    """Return the solution and the matrix, repeated for each element of a batch."""
    X = triangular(_transposed(A), b, not upper, unitriangular) if transpose else triangular(A, b, upper, unitriangular)
    return X, np.broadcast_to(A, (*X.shape[:-2], *A.shape[-2:]))


@reference("cholesky_solve", extended=True)
def cholesky_solve(input: Array, input2: Array, upper: bool) -> Array:
    """Multiply the factors, then eliminate."""
    L = adjoint(np.triu(input2)) if upper else np.tril(input2)
    return solved(L @ adjoint(L), input)


@reference("cholesky_inverse", extended=True)
def cholesky_inverse(input: Array, upper: bool) -> Array:
    """Multiply the factors, then eliminate."""
    L = adjoint(np.triu(input)) if upper else np.tril(input)
    return inverse(L @ adjoint(L))[0]


# -- LU ---------------------------------------------------------------------------------------------------------------
@reference("lu_unpack", extended=True)
def lu_unpack(LU: Array, pivots: Array, unpack_data: bool, unpack_pivots: bool) -> tuple[Array, ...]:
    """Return the triangles, and the row exchanges as a matrix."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    none = np.empty(0, LU.dtype)
    rows = np.eye(m, dtype=LU.dtype)
    P = stacked(lambda p: (rows[permutation(p, m)].T,), pivots, rank=1)[0]
    lower = np.tril(LU[..., :k], -1) + np.eye(m, k, dtype=LU.dtype)
    upper = np.triu(LU[..., :k, :])
    return P if unpack_pivots else none, lower if unpack_data else none, upper if unpack_data else none


@reference("linalg_lu", extended=True)
def lu(A: Array, pivot: bool) -> tuple[Array, ...]:
    """Return the factors of elimination."""
    packed, pivots, _ = lu_factor(A, pivot)
    return lu_unpack(packed, pivots, True, True)


@reference("linalg_lu_solve", extended=True)
def lu_solve(LU: Array, pivots: Array, B: Array, left: bool, adjoint_: bool) -> Array:
    """Multiply the factors, then eliminate."""
    P, L, U = lu_unpack(LU, pivots, True, True)
    A = adjoint(P @ L @ U) if adjoint_ else P @ L @ U
    return solved(A, B) if left else _transposed(solved(_transposed(A), _transposed(B)))


@reference("lu_solve", extended=True)
def older_lu_solve(b: Array, LU: Array, pivots: Array) -> Array:
    """Solve with the right-hand sides first."""
    return lu_solve(LU, pivots, b, True, False)


# -- least squares, pseudo-inverses and ranks -------------------------------------------------------------------------
@reference("linalg_lstsq_with_residuals")
def lstsq(A: Array, b: Array, rcond: float | None, driver: str | None) -> tuple[Array, ...]:
    """Return residuals only if the driver computes them and every matrix has full rank."""
    m, n = A.shape[-2:]
    driver = driver or "gelsy"
    vector = b.ndim == 1 or A.shape[:-1] == b.shape
    B = b[..., None] if vector else b
    X, rank, S = least_squares(A, B, np.finfo(A.dtype).eps * max(m, n) if rcond is None else rcond, driver)
    residuals = none = np.empty(0, A.real.dtype)
    if m > n and driver != "gelsy" and (driver == "gels" or (rank == n).all()):
        residuals = (np.abs(A @ X - B) ** 2).sum(-2)
        residuals = residuals[..., 0] if vector else residuals
    rank = np.empty(0, np.int64) if driver == "gels" else rank
    return X[..., 0] if vector else X, residuals, rank, S if S.shape[-1] else none


@reference("linalg_pinv")
def pinv(input: Array, rcond: Any, hermitian: bool, atol: Any, rtol: Any) -> Array:
    """Accept ``rcond`` as another name of ``rtol``."""
    return pseudo_inverse(input, atol, rtol if rcond is None else rcond, hermitian)


@reference("pinverse")
def pinverse(input: Array, rcond: float) -> Array:
    """Accept ``rcond`` as another name of ``rtol``."""
    return pseudo_inverse(input, None, rcond, False)


@reference("linalg_matrix_rank")
def matrix_rank(input: Array, tol: Any, hermitian: bool, atol: Any, rtol: Any) -> Array:
    """Return the number of singular values larger than ``max(atol, rtol * largest)``."""
    if not input.size:
        return np.zeros(input.shape[:-2], np.int64)
    if tol is not None:
        atol, rtol = tol, 0.0
    S = np.abs(eigh(input, "L")[0]) if hermitian else svdvals(input)
    if rtol is None:
        rtol = 0.0 if atol is not None and np.all(atol > 0) else np.finfo(input.dtype).eps * max(input.shape[-2:])
    bound = np.maximum(S.max(-1) * rtol, 0.0 if atol is None else atol)
    return np.asarray((np.asarray(bound)[..., None] < S).sum(-1))


# -- powers and norms -------------------------------------------------------------------------------------------------
@reference("linalg_matrix_power", "matrix_power", extended=True)
def matrix_power(A: Array, n: int) -> Array:
    """Multiply factor by factor."""
    base = inverse(A)[0] if n < 0 else A
    found = np.broadcast_to(np.eye(A.shape[-1], dtype=A.dtype), A.shape)
    for _ in range(abs(n)):
        found = found @ base
    return np.asarray(found)


@reference("linalg_vector_norm_of_order", extended=True)
def norm_of_order(x: Array, ord: float, dim: Any, keepdim: bool, dtype: Any) -> Array:
    """Ignore the requested dtype, which makes no difference in this precision."""
    return vector_norm(x, ord, dim, keepdim)


@reference("linalg_matrix_norm")
def matrix_norm(input: Array, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Array:
    """Compute from sums of absolute values, or from singular values."""
    x = np.moveaxis(input, dim, (-2, -1))
    size = np.abs(x)
    if ord == "fro":
        found = np.sqrt((size**2).sum((-2, -1)))
    elif ord == "nuc" or abs(ord) == 2:
        S = svdvals(x)
        found = S.sum(-1) if ord == "nuc" else _extreme(S, ord)
    else:
        found = _extreme(size.sum(-2 if abs(ord) == 1 else -1), ord)
    kept = [1 if d in (dim[0] % input.ndim, dim[1] % input.ndim) else n for d, n in enumerate(input.shape)]
    return np.asarray(found.reshape(kept) if keepdim else found)


def _extreme(x: Array, ord: float) -> Any:
    if ord < 0:
        return x.min(-1)
    return x.max(-1) if x.shape[-1] else x.sum(-1)


@reference("linalg_norm")
def norm(input: Array, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Array:
    """Compute norms of vectors without an order, and over one dim; otherwise norms of matrices."""
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if ord is None:
        return vector_norm(input, 2.0, dims, keepdim)
    if isinstance(ord, str) or len(dims or input.shape) == 2:
        return matrix_norm(input, ord, dims or (0, 1), keepdim, dtype)
    return vector_norm(input, ord, dims, keepdim)


@reference("norm")
def older_norm(input: Array, p: Any, dim: Any, keepdim: bool, dtype: Any) -> Array:
    """Compute norms of vectors for numeric orders; the nuclear norm is one of matrices."""
    if p == "nuc":
        return matrix_norm(input, p, (-2, -1) if dim is None else dim, keepdim, dtype)
    dims = tuple(dim) if isinstance(dim, (list, tuple)) else dim
    return vector_norm(input, 2.0 if p in ("fro", None) else p, dims, keepdim)


@reference("dist", extended=True)
def dist(input: Array, other: Array, p: float) -> Array:
    """Return the norm of all differences."""
    return vector_norm(input - other, p, None, False)


@reference("renorm", extended=True)
def renorm(input: Array, p: float, dim: int, maxnorm: float) -> Array:
    """Normalize slice by slice."""
    others = tuple(d for d in range(input.ndim) if d != dim % input.ndim)
    size = vector_norm(input, p, others, True)
    return np.asarray(np.where(size > maxnorm, input * (maxnorm / (size + size.dtype.type(1e-7))), input))


@reference("linalg_cond")
def cond(input: Array, p: Any) -> Array:
    """Return the quotient of singular values, or the product of two norms."""
    if 0 in input.shape[-2:]:
        return np.zeros(input.shape[:-2], input.real.dtype)
    if p is None or p in (2, -2):
        S = svdvals(input)
        return np.asarray(S[..., -1] / S[..., 0] if p == -2 else S[..., 0] / S[..., -1])
    inverted, info = inverse(input)
    inverted = np.where(info[..., None, None] == 0, inverted, 0)
    found = matrix_norm(input, p, (-2, -1), False, None) * matrix_norm(inverted, p, (-2, -1), False, None)
    return np.where(info == 0, found, np.inf)


# -- products, diagonals, powers of vectors ---------------------------------------------------------------------------
@reference("linalg_multi_dot", extended=True)
def multi_dot(tensors: list[Array]) -> Array:
    """Multiply from the first to the last."""
    found = tensors[0]
    for other in tensors[1:]:
        found = found @ other
    return np.asarray(found)


@reference("chain_matmul", extended=True)
def chain_matmul(*matrices: Any) -> Array:
    """Multiply from the first to the last, given separately or as a list."""
    return multi_dot(list(matrices[0] if isinstance(matrices[0], (list, tuple)) else matrices))


@reference("linalg_diagonal", extended=True)
def diagonal(A: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Call NumPy's function."""
    return np.diagonal(A, offset, dim1, dim2)


@reference("linalg_vander", extended=True)
def vander(x: Array, N: int | None) -> Array:
    """Compute power by power."""
    x = np.atleast_1d(x)
    wide = x.astype(np.int64) if x.dtype.kind in "iu" else x
    powers = [np.ones_like(wide)]
    for _ in range((x.shape[-1] if N is None else N) - 1):
        powers.append(powers[-1] * wide)
    return np.stack(powers, -1)


# -- functions that are not operators ---------------------------------------------------------------------------------
@reference("einsum")
def einsum(*args: Any) -> Array:
    """Call NumPy's function, with separate operands; it does not accept labels from 52."""
    if isinstance(args[0], str):
        operands = args[1] if isinstance(args[1], (list, tuple)) else args[1:]
        return np.asarray(np.einsum(args[0], *operands))
    return np.asarray(np.einsum(*args))


@reference("Tensor.addbmm_", extended=True)
def addbmm(input: Array, batch1: Array, batch2: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    """Sum the products over the batch."""
    product = (batch1 @ batch2).sum(0, dtype=input.dtype) * input.dtype.type(alpha)
    return np.asarray(product if beta == 0 else product + input * input.dtype.type(beta))


@reference("lu", extended=True)
def older_lu(A: Array, pivot: bool = True, get_infos: bool = False) -> tuple[Array, ...]:
    """Return two of the three results, or all."""
    return lu_factor(A, pivot)[: 3 if get_infos else 2]


def _leading(A: Array, q: int) -> tuple[Array, ...]:
    U, S, Vh = svd(A, False)
    return U[..., :q], S[..., :q], adjoint(Vh)[..., :q]


@reference("svd_lowrank")
def svd_lowrank(A: Array, q: int = 6, niter: int = 2, M: Array | None = None) -> tuple[Array, ...]:
    """Return the first singular values and vectors of the full decomposition."""
    return _leading(A if M is None else A - M, q)


@reference("pca_lowrank")
def pca_lowrank(A: Array, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Array, ...]:
    """Return the first singular values and vectors of the full decomposition of the centred rows."""
    return _leading(A - A.mean(-2, keepdims=True) if center else A, min(6, *A.shape[-2:]) if q is None else q)


@reference("lobpcg")
def lobpcg(A: Array, X: Array, B: Array | None = None, largest: bool = True, **options: Any) -> tuple[Array, ...]:
    """Return the extreme pairs of the full decomposition, B-orthonormal."""
    from importlib import import_module

    values, vectors = import_module("scipy.linalg").eigh(A, B)
    order = np.argsort(-values if largest else values)[: X.shape[-1]]
    return values[order], vectors[:, order]
