"""Singular values and eigenvalues by other algorithms than those of NumPy's functions, and functions of them.

Singular values: QR iteration (``gesvd``), where NumPy uses divide and conquer. Eigenvalues: the diagonal of Schur's
form. Eigenvectors: the null space of the matrix minus its eigenvalue.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import numpy as np

from candelabra_conformance.references.elimination import Array, adjoint, stacked
from candelabra_conformance.references.registry import reference

linalg: Final[Any] = import_module("scipy.linalg")  # it has no types


def _gesvd(A: Array, full: bool) -> tuple[Array, ...]:
    if not A.size:
        m, n = A.shape
        k = min(m, n)
        real = np.empty(k, A.real.dtype)
        return np.eye(m, m if full else k, dtype=A.dtype), real, np.eye(n if full else k, n, dtype=A.dtype)
    U, S, Vh = linalg.svd(A, full_matrices=full, lapack_driver="gesvd")
    return U, S, Vh


@reference("linalg_svd")
def svd(A: Array, full_matrices: bool) -> tuple[Array, ...]:
    """Compute by QR iteration."""
    return stacked(lambda a: _gesvd(a, full_matrices), A)


@reference("linalg_svdvals")
def svdvals(A: Array) -> Array:
    """Compute by QR iteration."""
    return stacked(lambda a: _gesvd(a, False), A)[1]


def _hermitian(A: Array, UPLO: str) -> Array:
    below = np.tril(A, -1) if UPLO == "L" else adjoint(np.triu(A, 1))
    return below + adjoint(below) + np.diag(np.diagonal(A).real)


def _eigh(A: Array, UPLO: str) -> tuple[Array, Array]:
    if not A.size:
        return np.empty(len(A), A.real.dtype), A
    values, vectors = linalg.eigh(_hermitian(A, UPLO), driver="ev")
    return values, vectors


@reference("linalg_eigh")
def eigh(A: Array, UPLO: str) -> tuple[Array, ...]:
    """Compute by QR iteration on the Hermitian matrix that one triangle represents."""
    return stacked(lambda a: _eigh(a, UPLO), A)


@reference("linalg_eigvalsh")
def eigvalsh(A: Array, UPLO: str) -> Array:
    """Return the eigenvalues of :func:`eigh`."""
    return eigh(A, UPLO)[0]


def _eig(A: Array) -> tuple[Array, Array]:
    whole = A.astype(np.result_type(A.dtype, np.complex128))
    if not A.size:
        return whole[0] if len(whole) else np.empty(0, whole.dtype), whole
    values = np.diagonal(linalg.schur(whole, output="complex")[0])
    one = np.eye(len(A))
    vectors = [np.conj(_gesvd(whole - value * one, True)[2][-1]) for value in values]
    return values, np.stack(vectors, -1)


@reference("linalg_eig")
def eig(A: Array) -> tuple[Array, ...]:
    """Compute Schur's form, and null vectors."""
    return stacked(_eig, A)


@reference("linalg_eigvals")
def eigvals(A: Array) -> Array:
    """Compute Schur's form."""
    return stacked(_eig, A)[0]


# -- functions of singular values -------------------------------------------------------------------------------------
def _pseudo_inverse(A: Array, bound: Any, hermitian: bool) -> Array:
    U, S, Vh = _gesvd(_hermitian(A, "L") if hermitian else A, False)
    keep = bound < S
    return adjoint(Vh[keep]) @ (adjoint(U[:, keep]) / S[keep, None])


@reference("pseudo_inverse")
def pseudo_inverse(input: Array, atol: Any, rtol: Any, hermitian: bool) -> Array:
    """Use the singular values larger than ``max(atol, rtol * largest)``, for Hermitian matrices too."""
    if not input.size:
        return np.swapaxes(input, -1, -2)
    if rtol is None:
        given = 0.0 if atol is None else np.asarray(atol)
        rtol = np.where(given > 0, 0.0, np.finfo(input.dtype).eps * max(input.shape[-2:]))
    largest = stacked(lambda a: (_gesvd(_hermitian(a, "L") if hermitian else a, False)[1].max(),), input)[0]
    bound = np.maximum(largest * rtol, 0.0 if atol is None else atol)
    return stacked(lambda a, b: (_pseudo_inverse(a, b[0, 0], hermitian),), input, bound[..., None, None])[0]


@reference("linalg_lstsq")
def least_squares(A: Array, B: Array, rcond: float, driver: str) -> tuple[Array, ...]:
    """Multiply the right-hand sides by the pseudo-inverse, and return the rank and singular values that a driver
    returns."""
    k = min(A.shape[-2:])
    lead = np.broadcast_shapes(A.shape[:-2], B.shape[:-2])
    given = driver in ("gelsd", "gelss")
    if not k:
        found = np.zeros((*lead, A.shape[-1], B.shape[-1]), A.dtype)
        return found, np.zeros(lead, np.int64), np.zeros((*lead, 0), A.real.dtype)
    X = pseudo_inverse(A, None, rcond, False) @ B
    S = svdvals(A)
    rank = np.full(S.shape[:-1], k) if driver == "gels" else (rcond * S[..., :1] < S).sum(-1)
    S = S if given else S[..., :0]
    return X, np.broadcast_to(rank, lead), np.broadcast_to(S, (*lead, S.shape[-1]))


def _exponential(A: Array) -> tuple[Array]:
    if not A.size:
        return (A,)
    if not np.isfinite(A).all():
        return (np.full_like(A, np.nan),)
    return (linalg.expm(A),)


@reference("linalg_matrix_exp")
def matrix_exp(input: Array) -> Array:
    """Use Padé's approximation, with scaling and squaring."""
    return stacked(_exponential, input)[0]
