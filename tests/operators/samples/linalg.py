"""Samples for the derivatives of linear algebra.

Factorizations read one triangle, or return vectors that are determined up to a sign or a phase: what is differentiated
is then a function of free parameters that does not depend on the choice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import numpy as np


def matrix(t: Any, *shape: int) -> Any:
    """Matrices with a diagonal that keeps them far from singular, and eigenvalues apart."""
    n, m = shape[-2:]
    steps = cd.arange(1, n + 1).to(t.dtype).unsqueeze(-1) * 1.5
    return (t(*shape).detach() + cd.eye(n, m, dtype=t.dtype) * steps).requires_grad_()


def hermitian(a: Any) -> Any:
    """The Hermitian part."""
    return (a + a.mH) / 2


def positive(a: Any) -> Any:
    """A positive-definite matrix made of any."""
    return a @ a.mH + cd.eye(a.shape[-1], dtype=a.dtype)


def of_eigen(found: Any) -> tuple[Any, ...]:
    """What does not depend on the phases of eigenvectors."""
    values, vectors = found
    return values, vectors.abs(), (vectors * values.unsqueeze(-2)) @ vectors.mH


def of_svd(found: Any) -> tuple[Any, ...]:
    """What does not depend on the phases of singular vectors."""
    k = found.S.shape[-1]
    U, Vh = found.U[..., :k], found.Vh[..., :k, :]
    return U.abs(), found.S, Vh.abs(), (U * found.S.unsqueeze(-2).exp()) @ Vh


SAMPLES: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "linalg_inv_ex": lambda t: (matrix(t, 2, 3, 3),),
    "linalg_solve_ex": lambda t: (matrix(t, 3, 3), t(2, 3, 2)),
    "linalg_det": lambda t: (matrix(t, 2, 3, 3),),
    "linalg_slogdet": lambda t: (matrix(t, 2, 3, 3),),
    "triangular_solution": lambda t: (matrix(t, 3, 3), t(2, 3, 2), True, False),
    "linalg_cholesky_ex": lambda t: (matrix(t, 3, 3), False),
    "linalg_qr": lambda t: (matrix(t, 2, 3, 2), "reduced"),
    "linalg_lu_factor_ex": lambda t: (matrix(t, 2, 3, 3), True),
    "linalg_svd": lambda t: (matrix(t, 3, 2), True),
    "linalg_svdvals": lambda t: (matrix(t, 3, 3),),
    "linalg_eigh": lambda t: (matrix(t, 3, 3), "L"),
    "linalg_eigvalsh": lambda t: (matrix(t, 3, 3), "U"),
    "linalg_eig": lambda t: (matrix(t, 3, 3),),
    "linalg_eigvals": lambda t: (matrix(t, 3, 3),),
    "linalg_vector_norm": lambda t: (t(2, 3), 3.0, (1,), False),
    "pseudo_inverse": lambda t: (matrix(t, 3, 2), None, None, False),
    "linalg_lstsq": lambda t: (matrix(t, 3, 2), t(3, 2), 1e-12, "gelsy"),
    "linalg_matrix_exp": lambda t: (t(2, 2, 2),),
}
CALLS: dict[str, Callable[..., Any]] = {
    "linalg_inv_ex": lambda op, A: op(A).inverse,
    "linalg_solve_ex": lambda op, A, B: op(A, B).result,
    "linalg_lu_factor_ex": lambda op, A, pivot: op(A, pivot).LU,
    "linalg_lstsq": lambda op, *args: op(*args).solution,
    "linalg_cholesky_ex": lambda op, A, upper: op(positive(A), upper).L,
    "linalg_svd": lambda op, A, full: of_svd(op(A, full)),
    "linalg_eigh": lambda op, A, uplo: of_eigen(op(hermitian(A), uplo)),
    "linalg_eigvalsh": lambda op, A, uplo: op(hermitian(A), uplo),
    "linalg_eig": lambda op, A: of_eigen(op(A)),
}
KERNEL_ARGUMENTS: dict[str, dict[str, Any]] = {
    "linalg_eigh": {"UPLO": "L"},
    "linalg_eigvalsh": {"UPLO": "L"},
    "linalg_householder_product": {"tau": np.ones(4)},
    "linalg_ormqr": {"tau": np.ones(4)},
    "linalg_ldl_solve": {"pivots": np.arange(1, 5)},
    "linalg_lstsq": {"driver": "gelsd"},
    "linalg_lu_factor_ex": {"pivot": True},
    "linalg_qr": {"mode": "reduced"},
    "pivots_to_permutation": {"pivots": np.ones((2, 4), np.int64), "rows": 4},
}
