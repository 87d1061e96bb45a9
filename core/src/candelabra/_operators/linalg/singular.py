"""Singular values.

With A = U S Vᴴ, k values, and skew(X) = X - Xᴴ, Townsend (Differentiating the singular value decomposition, 2016) gives

    gA = U [ (skew(Uᴴ gU) / E) S + S (skew(Vᴴ gV) / E) + diag(gS) ] Vᴴ,    E_ij = s_j² - s_i², 1 on the diagonal,

plus what gU and gV have outside the spans of U and V, divided by S. In the complex case the vectors are determined up
to a phase per singular value; a loss that depends on it has no derivative, and is refused.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.linalg.requirements import check_matrix, factored, least, matrices
from candelabra._operators.primitives.creation import eye
from candelabra._records.callables import public
from candelabra._records.promotion import real_part, same
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor


class SVD(NamedTuple):
    """Left vectors as columns, singular values in descending order, right vectors as conjugated rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@by
def _svd_shapes(A: Tensor, full_matrices: bool) -> Any:
    shape = shape_of(A)
    check_matrix("linalg.svd", shape)
    lead, (m, n), k = shape[:-2], shape[-2:], min(shape[-2:])
    return (*lead, m, m if full_matrices else k), (*lead, k), (*lead, n if full_matrices else k, n)


@operator(_svd_shapes, promote=factored("linalg.svd"), result=(same, real_part, same), public=False, method=False)
def linalg_svd(A: Tensor, full_matrices: bool) -> SVD:
    """``A = U diag(S) Vh``; U and Vh square if ``full_matrices``, else with as many vectors as there are values."""
    ...


def _svd_back(
    A_spec: Any,
    U: Tensor,
    S: Tensor,
    Vh: Tensor,
    full_matrices: bool,
    g_U: Tensor | None = None,
    g_S: Tensor | None = None,
    g_Vh: Tensor | None = None,
) -> Tensor:
    m, n = A_spec.shape[-2:]
    k = min(m, n)
    if full_matrices:  # the vectors beyond the k-th are any basis of the rest: no loss may depend on them
        U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
        g_U = None if g_U is None else g_U.narrow(-1, 0, k)
        g_Vh = None if g_Vh is None else g_Vh.narrow(-2, 0, k)
    if g_U is None and g_Vh is None:
        assert g_S is not None  # one of three gradients has arrived
        return (U * g_S.unsqueeze(-2)) @ Vh
    left, right = S.unsqueeze(-1), S.unsqueeze(-2)
    turn_U = None if g_U is None else _skew(U.mH @ g_U)
    turn_V = None if g_Vh is None else _skew(Vh @ g_Vh.mH)
    _check_phase(turn_U, turn_V)
    gap = right * right - left * left + eye(k, k, dtype=S.dtype, device=S.device)
    inner = turn_U * right / gap if turn_U is not None else None
    if turn_V is not None:
        inner = left * turn_V / gap if inner is None else inner + left * turn_V / gap
    assert inner is not None
    if g_S is not None:
        inner = inner + g_S.diag_embed()
    if turn_U is not None and turn_V is not None and turn_U.is_complex():
        inner = inner + (turn_U.diagonal(0, -2, -1) / (S * 2)).diag_embed()
    out = U @ inner
    if m > k and g_U is not None:
        outside = g_U / right
        out = out + outside - U @ (U.mH @ outside)
    out = out @ Vh
    if n > k and g_Vh is not None:
        outside = g_Vh / left
        out = out + U @ (outside - (outside @ Vh.mH) @ Vh)
    return out


def _skew(x: Tensor) -> Tensor:
    return x - x.mH


def _check_phase(turn_U: Tensor | None, turn_V: Tensor | None) -> None:
    turns = [t for t in (turn_U, turn_V) if t is not None]
    if not turns[0].is_complex():
        return
    total = turns[0] if len(turns) == 1 else turns[0] + turns[1]
    if bool((total.detach().diagonal(0, -2, -1).imag.abs() > 1e-2).any()):
        raise RuntimeError(
            "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. "
            "The specified loss function depends on this phase term, making it ill-defined."
        )


linalg_svd.vjp(A=_svd_back)


def _check_driver(driver: str | None, A: Tensor) -> None:
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@public(namespace="linalg")
@takes_tensors("linalg_svd")
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> SVD:
    """``(U, S, Vh)`` with ``A = U diag(S) Vh`` for matrices (…, m, n).

    U and Vh are square with ``full_matrices``, else (…, m, k) and (…, k, n) with k = min(m, n). ``driver`` is accepted
    as None only. ``LinAlgError`` where the matrix is not finite.
    """
    _check_driver(driver, A)
    return delivered("linalg.svd", linalg_svd(A, full_matrices), out)


@operator(matrices("linalg.svd", least), promote=factored("linalg.svd"), result=real_part, public=False, method=False)
def linalg_svdvals(A: Tensor) -> Tensor:
    """The singular values alone, in descending order."""
    ...


def _svdvals_back(g: Tensor, A: Tensor) -> Tensor:
    U, _, Vh = linalg_svd(A, False)
    return (U * g.unsqueeze(-2)) @ Vh


linalg_svdvals.vjp(A=_svdvals_back)


@public(namespace="linalg")
@takes_tensors("linalg_svdvals")
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values of (…, m, n) matrices, (…, min(m, n)), in descending order."""
    _check_driver(driver, A)
    return delivered("linalg.svdvals", linalg_svdvals(A), out)
