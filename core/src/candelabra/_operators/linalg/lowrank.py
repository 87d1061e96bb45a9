"""Singular values and eigenvalues of large matrices, a few of them, by random projection and by iteration."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, NamedTuple
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.orthogonal import qr
from candelabra._operators.linalg.singular import linalg_svd
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra.typing import Tensor


class LowRank(NamedTuple):
    """Left and right singular vectors as columns, and the singular values, in descending order."""

    U: Tensor
    S: Tensor
    V: Tensor


def _range_of(A: Tensor, q: int, niter: int) -> Tensor:
    """Orthonormal columns (…, m, q) that nearly span the range of A: subspace iteration from a random start.

    Halko, Martinsson and Tropp, Finding structure with randomness, 2011, algorithm 4.4.
    """
    from candelabra import randn

    start = randn((*A.shape[:-2], A.shape[-1], q), dtype=A.dtype, device=A.device)
    Q = qr(A @ start).Q
    for _ in range(niter):
        Q = qr(A.mH @ Q).Q
        Q = qr(A @ Q).Q
    return Q


@public(method=False)
@takes_tensors("svd_lowrank")
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> LowRank:
    """The ``q`` leading singular values and vectors of A - M, nearly: ``A - M ≈ U diag(S) Vᴴ``.

    ``niter`` subspace iterations follow a random projection (Halko, Martinsson and Tropp, 2011, algorithm 5.1); M
    broadcasts to A, (…, m, n).
    """
    count, rounds = 6 if q is None else q, 2 if niter is None else niter
    if not 0 <= count <= min(A.shape[-2:]):
        raise ValueError(f"q(={count}) must be non-negative integer and not greater than min(m, n)={min(A.shape[-2:])}")
    if rounds < 0:
        raise ValueError(f"niter(={rounds}) must be non-negative integer")
    X = A if M is None else A - M
    wide = X.shape[-2] < X.shape[-1]
    if wide:
        X = X.mH
    Q = _range_of(X, count, rounds)
    U, S, Vh = linalg_svd(Q.mH @ X, False)
    U, V = Q @ U, Vh.mH
    return LowRank(V, S, U) if wide else LowRank(U, S, V)


@public(method=False)
@takes_tensors("pca_lowrank")
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> LowRank:
    """Principal components of the rows of A, (…, m, n): :func:`svd_lowrank` of A with its columns' means taken away.

    The columns of V are the directions; ``q`` of them, at most min(m, n), by default 6.
    """
    m, n = A.shape[-2:]
    count = min(6, m, n) if q is None else q
    if not 0 <= count <= min(m, n):
        raise ValueError(f"q(={count}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, True) if center else A, count, niter)
