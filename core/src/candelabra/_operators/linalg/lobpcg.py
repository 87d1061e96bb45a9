"""Extreme eigenpairs of large symmetric matrices, computed by iteration.

Knyazev, Toward the optimal preconditioned eigensolver: locally optimal block preconditioned conjugate gradient method,
2001. The trial space of a step is spanned by the current vectors, the preconditioned residuals and the previous step;
its basis is orthonormalised by QR before the small problem is solved.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.creation.filled import zeroed
from candelabra._operators.creation.matrices import new_eye
from candelabra._operators.linalg.eigenvalues import linalg_eigh
from candelabra._operators.linalg.factorizations.cholesky import linalg_cholesky_ex
from candelabra._operators.linalg.factorizations.qr import linalg_qr
from candelabra._operators.linalg.rules import check_square, check_tensor, floating
from candelabra._operators.linalg.solvers import linalg_solve_ex, triangular_solution
from candelabra._operators.shapes.joining import cat
from candelabra._records.callables import public
from candelabra._records.rules import shape_of
from candelabra.dtypes import finfo

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def _count(A: Tensor, k: int | None, B: Tensor | None, X: Tensor | None, n: int | None) -> tuple[int, int]:
    """Check the arguments and return the numbers of vectors to iterate and of eigenpairs to return."""
    check_tensor("lobpcg", A)
    shape = shape_of(A)
    floating("lobpcg")(A.dtype)
    check_square("lobpcg", shape)
    if A.is_complex():
        raise RuntimeError("lobpcg: Expected a real tensor as input")
    if B is not None and shape_of(B) != shape:
        raise RuntimeError(f"lobpcg: A and B must have same shape, got {list(shape)} vs {list(shape_of(B))}")
    m = shape[-1]
    size = shape_of(X)[-1] if X is not None else (k or 1) if n is None else n
    if m < 3 * size:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of "
            f"requested eigenpairs (={size})"
        )
    if X is not None and shape_of(X) != (*shape[:-1], size):
        raise RuntimeError(f"lobpcg: X shape mismatch: got {list(shape_of(X))}, expected {[*shape[:-1], size]}")
    return size, (1 if X is None else size) if k is None else k


@public(method=False)
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the ``k`` largest (or smallest) eigenvalues, (…, k), and vectors, (…, m, k), of symmetric A X = B X
    diag(E).

    ``B`` is positive-definite, by default the identity. ``X`` (…, m, n) has the initial vectors, by default n random
    ones. ``iK`` is a preconditioner, an approximate inverse of A. ``niter`` is the maximum number of iterations
    (default 1000; -1: no limit). ``tol`` is the bound of the residuals relative to A, B and X, by default the square
    root of the dtype's epsilon. The derivative is that of exact eigenpairs, which must be simple. ``method`` and the
    ``ortho_`` parameters select an orthonormalisation in PyTorch; this function always uses QR. ``tracker`` is not
    supported.
    """
    if tracker is not None:
        raise NotImplementedError("lobpcg(): argument 'tracker' is not supported, it must be None")
    size, count = _count(A, k, B, X, n)
    start = A.new_empty((*A.shape[:-1], size)).normal_() if X is None else X
    accuracy = finfo(A.dtype).eps ** 0.5 if tol is None else tol
    rounds = 1000 if niter is None else niter
    upper = largest is None or largest
    plain = [None if t is None else t.detach() for t in (B, iK)]
    values, vectors = _iterate(A.detach(), plain[0], start.detach(), plain[1], rounds, accuracy, upper)
    values, vectors = values[..., :count], vectors[..., :count]
    if A.requires_grad or (B is not None and B.requires_grad):
        for _ in range(2):  # one step has the first derivative, two steps have the second
            values, vectors = _newton_step(A, B, values, vectors)
    return values, vectors


def _iterate(
    A: Tensor, B: Tensor | None, X: Tensor, iK: Tensor | None, rounds: int, accuracy: float, upper: bool
) -> tuple[Tensor, Tensor]:
    """Return the eigenpairs after ``rounds`` iterations, or earlier if the residuals are below the bound."""
    size = X.shape[-1]
    values, X = _rayleigh_ritz(A, B, X, size, upper)
    last: Tensor | None = None
    scale = _norm_bound(A), 1.0 if B is None else _norm_bound(B)
    done = 0
    while done != rounds:
        BX = X if B is None else B @ X
        residual = A @ X - BX * values.unsqueeze(-2)
        bound = (scale[0] + values.abs() * scale[1]) * _column_norms(X) * accuracy
        if not bool((_column_norms(residual) > bound).any()):
            break
        step = residual if iK is None else iK @ residual
        space = cat([X, step] if last is None else [X, step, last], -1)
        values, new = _rayleigh_ritz(A, B, space, size, upper)
        last = new - X @ (BX.mT @ new)
        X = new
        done += 1
    return values, X


def _column_norms(x: Tensor) -> Tensor:
    return (x * x).sum(-2).sqrt()


def _norm_bound(A: Tensor) -> Tensor:
    """Return an inexpensive bound of the spectral norm of each matrix, with which residuals are compared."""
    return A.abs().sum(-1).amax(-1, True)


def _rayleigh_ritz(A: Tensor, B: Tensor | None, space: Tensor, size: int, upper: bool) -> tuple[Tensor, Tensor]:
    """Return the extreme eigenpairs of A within a space, B-orthonormal: the Rayleigh-Ritz method."""
    basis = linalg_qr(space).Q
    small = basis.mT @ A @ basis
    if B is not None:
        L = linalg_cholesky_ex(basis.mT @ B @ basis).L
        small = triangular_solution(L, triangular_solution(L, small, False, False).mT, False, False)
    values, vectors = linalg_eigh((small + small.mT) * 0.5)
    if B is not None:
        vectors = triangular_solution(L.mT, vectors, True, False)
    if upper:
        values, vectors = values.flip(-1), vectors.flip(-1)
    return values[..., :size], basis @ vectors[..., :size]


def _newton_step(A: Tensor, B: Tensor | None, values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Return one step of Newton's method for A x = e B x with xᵀ B x = 1, which is differentiable in A and B.

    ( A - e B   -B x ) ( dx )   ( e B x - A x )
    ( -xᵀ B        0 ) ( de ) = ( (xᵀ B x - 1) / 2 )
    """
    m = A.shape[-1]
    x, e = vectors.mT.unsqueeze(-1), values.unsqueeze(-1).unsqueeze(-1)  # (…, k, m, 1) and (…, k, 1, 1)
    if B is None:
        B = new_eye(A, m, m)
    A, B = A.unsqueeze(-3), B.unsqueeze(-3)
    Bx = B @ x
    norm = (x.mT @ Bx - 1) * 0.5
    system = cat([cat([A - e * B, -Bx], -1), cat([-Bx.mT, zeroed(norm)], -1)], -2)
    step = linalg_solve_ex(system, cat([e * Bx - A @ x, norm], -2)).result
    x, e = x + step.narrow(-2, 0, m), e + step.narrow(-2, m, 1)
    return e.squeeze(-1).squeeze(-1), x.squeeze(-1).mT
