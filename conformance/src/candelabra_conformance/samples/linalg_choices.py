"""Values that do not depend on the choice of factors that are unique only up to a sign or a phase.

Each function takes a result as Tensors (any tuple of them), and returns Tensors.
"""

from __future__ import annotations

from typing import Any

import candelabra as cd


def hermitian_part(a: Any) -> Any:
    """Return half the sum with the adjoint, as a function of the free parameters of a Hermitian matrix."""
    return (a + a.mH) / 2


def positive_part(a: Any) -> Any:
    """Return a positive-definite matrix that is computed from any matrix."""
    return a @ a.mH + cd.eye(a.shape[-1], dtype=a.dtype, device=a.device)


def of_eigh(result: Any) -> tuple[Any, ...]:
    """Return the values, the moduli of the vectors' elements, and the matrix that they decompose."""
    values, vectors = result
    return values, vectors.abs(), (vectors * values.unsqueeze(-2)) @ vectors.mH


def in_order(values: Any) -> Any:
    """Return the order of eigenvalues along a line in the complex plane that separates conjugates."""
    return (values.real + values.imag * 0.37).argsort(-1)


def of_eigvals(values: Any) -> Any:
    """Return the eigenvalues, whose order is unspecified, in a fixed order."""
    return values.gather(-1, in_order(values))


def of_eig(result: Any) -> tuple[Any, ...]:
    """Return values and moduli of the vectors' elements in a fixed order, and the matrix that they decompose."""
    values, vectors = result
    columns = in_order(values).unsqueeze(-2).expand(vectors.shape)
    return of_eigvals(values), vectors.abs().gather(-1, columns), (vectors * values.unsqueeze(-2)) @ vectors.mH


def of_svd(result: Any) -> tuple[Any, ...]:
    """Return singular values, moduli of the vectors' elements, and the product of the decomposition with exp(-S) in
    place of S."""
    U, S, Vh = result
    k = S.shape[-1]
    left, right = U[..., :k], Vh[..., :k, :]
    return left.abs(), S, right.abs(), (left * (-S).exp().unsqueeze(-2)) @ right


def of_full_svd(result: Any) -> tuple[Any, ...]:
    """Return the results of :func:`of_svd`, and the Gram matrices of both bases."""
    U, _, Vh = result
    return (*of_svd(result), U.mH @ U, Vh @ Vh.mH)


def of_qr(result: Any) -> tuple[Any, ...]:
    """Return the matrix, moduli of the triangle's elements, and the projection onto the columns."""
    Q, R = result
    return Q @ R, R.abs(), Q @ Q.mH


def of_triangle(result: Any) -> tuple[Any, ...]:
    """For a QR factorization without Q, return the moduli of the triangle's elements, and ``Rᴴ R``, which is ``Aᴴ
    A``."""
    R = result[1]
    return R.abs(), R.mH @ R


def of_reflections(result: Any) -> tuple[Any, ...]:
    """For a QR factorization as reflections, return the matrix, and the moduli of the triangle's elements."""
    a, tau = result
    k = tau.shape[-1]
    R = a[..., :k, :].triu()
    return cd.linalg.householder_product(a[..., :k], tau) @ R, R.abs()


def of_ldl(hermitian: bool) -> Any:
    """For a block factorization, return the inverse that is computed with it, and whether a block is zero."""

    def of(result: Any) -> tuple[Any, ...]:
        LD, pivots, info = result
        one = cd.eye(LD.shape[-1], dtype=LD.dtype, device=LD.device)
        return cd.linalg.ldl_solve(LD, pivots, one, hermitian=hermitian), info != 0

    return of


def of_breakdown(result: Any) -> Any:
    """Return only whether the last output, an info, reports a breakdown: devices detect it at different indices."""
    return result[-1] != 0


def of_eigenpairs(result: Any) -> tuple[Any, ...]:
    """Return eigenvalues, and the squares of the vectors' elements."""
    values, vectors = result
    return values, vectors * vectors
