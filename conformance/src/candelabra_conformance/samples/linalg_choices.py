"""Of factors that are determined up to a sign or a phase: what does not depend on the choice.

Each takes a result as Tensors (any tuple of them), and returns Tensors.
"""

from __future__ import annotations

from typing import Any

import candelabra as cd


def hermitian_part(a: Any) -> Any:
    """Half the sum with the adjoint: the free parameters of a Hermitian matrix."""
    return (a + a.mH) / 2


def positive_part(a: Any) -> Any:
    """A positive-definite matrix made of any."""
    return a @ a.mH + cd.eye(a.shape[-1], dtype=a.dtype, device=a.device)


def of_eigh(found: Any) -> tuple[Any, ...]:
    """Values, sizes of the vectors' parts, and the matrix that they make."""
    values, vectors = found
    return values, vectors.abs(), (vectors * values.unsqueeze(-2)) @ vectors.mH


def in_order(values: Any) -> Any:
    """The order of eigenvalues along a line across the complex plane that tells conjugates apart."""
    return (values.real + values.imag * 0.37).argsort(-1)


def of_eigvals(values: Any) -> Any:
    """Eigenvalues, which come in no order, in one."""
    return values.gather(-1, in_order(values))


def of_eig(found: Any) -> tuple[Any, ...]:
    """Values and sizes of the vectors' parts, both in order, and what the vectors make with the values between them."""
    values, vectors = found
    columns = in_order(values).unsqueeze(-2).expand(vectors.shape)
    return of_eigvals(values), vectors.abs().gather(-1, columns), (vectors * values.unsqueeze(-2)) @ vectors.mH


def of_svd(found: Any) -> tuple[Any, ...]:
    """Singular values, sizes of the vectors' parts, and what they make with exp(S) between them (S alone is A)."""
    U, S, Vh = found
    k = S.shape[-1]
    left, right = U[..., :k], Vh[..., :k, :]
    return left.abs(), S, right.abs(), (left * (-S).exp().unsqueeze(-2)) @ right


def of_full_svd(found: Any) -> tuple[Any, ...]:
    """As :func:`of_svd`; and that both bases are whole and orthonormal."""
    U, _, Vh = found
    return (*of_svd(found), U.mH @ U, Vh @ Vh.mH)


def of_qr(found: Any) -> tuple[Any, ...]:
    """The matrix, sizes of the triangle's parts, and the projection onto the columns."""
    Q, R = found
    return Q @ R, R.abs(), Q @ Q.mH


def of_triangle(found: Any) -> tuple[Any, ...]:
    """Of a QR factorization without Q: the sizes of the triangle's parts, and ``Rᴴ R``, which is ``Aᴴ A``."""
    R = found[1]
    return R.abs(), R.mH @ R


def of_reflections(found: Any) -> tuple[Any, ...]:
    """Of a QR factorization as reflections: the matrix that they make, and the sizes of the triangle's parts."""
    a, tau = found
    k = tau.shape[-1]
    R = a[..., :k, :].triu()
    return cd.linalg.householder_product(a[..., :k], tau) @ R, R.abs()


def of_ldl(hermitian: bool) -> Any:
    """Of a block factorization: the inverse that is solved for with it, and where a block is zero."""

    def of(found: Any) -> tuple[Any, ...]:
        LD, pivots, info = found
        one = cd.eye(LD.shape[-1], dtype=LD.dtype, device=LD.device)
        return cd.linalg.ldl_solve(LD, pivots, one, hermitian=hermitian), info != 0

    return of


def of_breakdown(found: Any) -> Any:
    """Only whether an info, which comes last, tells of a breakdown: devices see it at different places."""
    return found[-1] != 0


def of_eigenpairs(found: Any) -> tuple[Any, ...]:
    """Eigenvalues, and the squares of the vectors' parts."""
    values, vectors = found
    return values, vectors * vectors
