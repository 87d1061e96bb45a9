"""Linear systems, determinants and triangular factors by elimination, row by row, without LAPACK.

All of it uses NumPy's arithmetic, so it keeps the precision of its input, including ``np.longdouble``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from candelabra_conformance.references.registry import reference

Array = np.ndarray[Any, Any]


def stacked(function: Any, *arrays: Array, rank: int = 2) -> tuple[Array, ...]:
    """Apply ``function`` to each matrix of batches that broadcast, and stack the results.

    For an empty batch the function is applied to ones of the right shape, to find the results' shapes and dtypes.
    """
    lead = np.broadcast_shapes(*(a.shape[:-rank] for a in arrays))
    whole = [np.broadcast_to(a, lead + a.shape[-rank:]) for a in arrays]
    if 0 in lead:
        found = function(*(np.ones(a.shape[-rank:], a.dtype) for a in arrays))
        return tuple(np.empty(lead + np.shape(part), np.asarray(part).dtype) for part in found)
    parts = [function(*(a[i] for a in whole)) for i in np.ndindex(*lead)]
    return tuple(np.array([p[k] for p in parts]).reshape(lead + np.shape(parts[0][k])) for k in range(len(parts[0])))


def adjoint(x: Array) -> Array:
    """Return the conjugate transpose."""
    return np.conj(np.swapaxes(x, -1, -2))


def eliminated(A: Array) -> tuple[Array, Array, np.int32]:
    """Return L below and U on and above the diagonal; the row exchanges, from 1; the index of the first zero pivot, or
    0."""
    lu, k = A.copy(), min(A.shape)
    pivots, info = np.zeros(k, np.int32), 0
    for i in range(k):
        best = i + int(np.argmax(np.abs(lu[i:, i])))
        pivots[i] = best + 1
        lu[[i, best]] = lu[[best, i]]
        if lu[i, i] == 0:
            info = info or i + 1
            continue
        lu[i + 1 :, i] /= lu[i, i]
        lu[i + 1 :, i + 1 :] -= np.outer(lu[i + 1 :, i], lu[i, i + 1 :])
    return lu, pivots, np.int32(info)


def permutation(pivots: Array, rows: int) -> Array:
    """Return the permutation that results from exchanging row i and row ``pivots[i] - 1`` in sequence."""
    order = np.arange(rows)
    for i, row in enumerate(pivots):
        order[[i, row - 1]] = order[[row - 1, i]]
    return order


def substituted(A: Array, B: Array, upper: bool, ones: bool) -> Array:
    """Return X with A X = B for one triangle of A, with a unit diagonal if ``ones``."""
    n, out = len(A), B.copy()
    for i in range(n - 1, -1, -1) if upper else range(n):
        known = slice(i + 1, n) if upper else slice(0, i)
        out[i] = out[i] - (A[i, known, None] * out[known]).sum(0)
        if not ones:
            with np.errstate(divide="ignore", invalid="ignore"):
                out[i] = out[i] / A[i, i]
    return out


def _solved(A: Array, B: Array) -> tuple[Array, np.int32]:
    lu, pivots, info = eliminated(A)
    return substituted(lu, substituted(lu, B[permutation(pivots, len(A))], False, True), True, False), info


def solved(A: Array, B: Array) -> Array:
    """Return X with A X = B, for batches."""
    return stacked(_solved, A, B)[0]


@reference("linalg_solve_ex", extended=True)
def solve(A: Array, B: Array) -> tuple[Array, ...]:
    """Return the solutions, and the index of the first zero pivot."""
    return stacked(_solved, A, B)


@reference("linalg_inv_ex", extended=True)
def inverse(A: Array) -> tuple[Array, ...]:
    """Solve for the identity matrix."""
    return stacked(_solved, A, np.eye(A.shape[-1], dtype=A.dtype))


@reference("triangular_solution", extended=True)
def triangular(A: Array, B: Array, upper: bool, unitriangular: bool) -> Array:
    """Solve by substitution."""
    return stacked(lambda a, b: (substituted(a, b, upper, unitriangular),), A, B)[0]


@reference("linalg_lu_factor_ex", extended=True)
def lu_factor(A: Array, pivot: bool) -> tuple[Array, ...]:
    """Eliminate with partial pivoting."""
    return stacked(eliminated, A)


@reference("pivots_to_permutation")
def permutations(pivots: Array, rows: int) -> Array:
    """Exchange the rows in sequence."""
    return stacked(lambda row: (permutation(row, rows),), pivots, rank=1)[0]


def _signed(A: Array) -> tuple[Any, Any, Any]:
    lu, pivots, _ = eliminated(A)
    swaps = sum(row != i + 1 for i, row in enumerate(pivots))
    diagonal = np.diagonal(lu)
    sizes = np.abs(diagonal)
    with np.errstate(divide="ignore"):
        logarithm = np.log(sizes).sum()
    if (sizes == 0).any():
        return np.zeros((), A.dtype)[()], logarithm, np.zeros((), A.dtype)[()]
    sign = np.prod(diagonal / sizes) * (-1) ** swaps
    return sign, logarithm, np.prod(diagonal) * (-1) ** swaps


@reference("linalg_det", extended=True)
def determinant(A: Array) -> Array:
    """Return the product of the pivots."""
    return stacked(_signed, A)[2]


@reference("linalg_slogdet", extended=True)
def logarithmic_determinant(A: Array) -> tuple[Array, ...]:
    """Return the product of the pivots' signs, and the sum of their logarithms."""
    return stacked(_signed, A)[:2]


@reference("linalg_det_along", extended=True)
def determinant_along(t: Array, A: Array) -> tuple[Array, ...]:
    """Replace each row by its tangent in turn: a determinant is linear in each row."""

    def slope(tangent: Array, a: Array) -> tuple[Any]:
        replaced = [np.where(np.arange(len(a))[:, None] == i, tangent, a) for i in range(len(a))]
        return (sum((determinant(each) for each in replaced), np.zeros((), a.dtype)),)

    return determinant(A), stacked(slope, t, A)[0]


@reference("linalg_slogdet_along", extended=True)
def logarithmic_determinant_along(t: Array, A: Array) -> tuple[Array, ...]:
    """Divide the derivative of the determinant by the determinant."""
    det, slope = determinant_along(t, A)
    return *logarithmic_determinant(A), slope / det


def _cholesky(A: Array) -> tuple[Array, np.int32]:
    n, L = len(A), np.zeros_like(A)
    for j in range(n):
        left = A[j, j].real - (np.abs(L[j, :j]) ** 2).sum()
        if not left > 0:
            return L, np.int32(j + 1)
        L[j, j] = np.sqrt(left)
        L[j + 1 :, j] = (A[j + 1 :, j] - (L[j + 1 :, :j] * np.conj(L[j, :j])).sum(-1)) / L[j, j]
    return L, np.int32(0)


@reference("linalg_cholesky_ex", extended=True)
def cholesky(input: Array, upper: bool) -> tuple[Array, ...]:
    """Factorize column by column (Cholesky and Banachiewicz)."""
    L, info = stacked(_cholesky, adjoint(input) if upper else input)
    return (adjoint(L) if upper else L), info


# -- symmetric indefinite ---------------------------------------------------------------------------------------------
def _adjoint_of(x: Array, hermitian: bool) -> Array:
    return np.conj(x).T if hermitian else x.T


def _whole(A: Array, hermitian: bool) -> Array:
    """Return the symmetric or Hermitian matrix that a lower triangle represents."""
    below = np.tril(A, -1)
    diagonal = np.diagonal(A).real if hermitian else np.diagonal(A)
    return below + _adjoint_of(below, hermitian) + np.diag(diagonal)


def _blocks(A: Array, hermitian: bool) -> tuple[Array, Array, np.int32]:
    """Factorize with blocks of one if the pivot is at least a tenth of its column, else of two; nothing is swapped."""
    rest, n = _whole(A, hermitian), len(A)
    LD, pivots, i = np.zeros_like(A), np.zeros(n, np.int32), 0
    while i < n:
        column = np.abs(rest[i + 1 :, i])
        size = 1 if i + 1 == n or np.abs(rest[i, i]) >= 0.1 * column.max() else 2
        block, below = rest[i : i + size, i : i + size], rest[i + size :, i : i + size]
        factor = below @ solved(block, np.eye(size, dtype=A.dtype))
        LD[i : i + size, i : i + size], LD[i + size :, i : i + size] = np.tril(block), factor
        rest[i + size :, i + size :] = rest[i + size :, i + size :] - factor @ _adjoint_of(below, hermitian)
        pivots[i : i + size] = i + 1 if size == 1 else -(i + 2)
        i += size
    return LD, pivots, np.int32(0)


@reference("linalg_ldl_factor_ex")
def ldl_factor(input: Array, hermitian: bool) -> tuple[Array, ...]:
    """Return a factorization that solves the same systems as LAPACK's."""
    return stacked(lambda a: _blocks(a, hermitian), input)


def _multiplied(LD: Array, pivots: Array, hermitian: bool) -> Array:
    """Return the matrix with these factors: P L P L … D … Lᴴ P Lᴴ P, by the definition of LAPACK's storage."""
    n, i = len(LD), 0
    L, D = np.eye(n, dtype=LD.dtype), np.zeros_like(LD)
    while i < n:
        size = 1 if pivots[i] > 0 else 2
        block = slice(i, i + size)
        D[block, block] = _whole(LD[block, block], hermitian)
        step = np.eye(n, dtype=LD.dtype)
        step[i + size :, block] = LD[i + size :, block]
        swap, row = np.arange(n), abs(int(pivots[i])) - 1
        swap[[i + size - 1, row]] = swap[[row, i + size - 1]]
        L = L[:, swap] @ step
        i += size
    return L @ D @ _adjoint_of(L, hermitian)


@reference("linalg_ldl_solve")
def ldl_solve(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Array:
    """Multiply the factors, then eliminate."""
    lead = LD.shape[:-2]
    whole = [_multiplied(LD[i], pivots[i], hermitian) for i in np.ndindex(*lead)]
    return solved(np.array(whole, LD.dtype).reshape(LD.shape), B)
