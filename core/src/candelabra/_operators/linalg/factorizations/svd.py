"""Singular values and vectors.

With A = U S Vᴴ, k values, and skew(X) = X - Xᴴ, Townsend (Differentiating the singular value decomposition, 2016) gives

    gA = U [ (skew(Uᴴ gU) / E) S + S (skew(Vᴴ gV) / E) + diag(gS) ] Vᴴ,    E_ij = s_j² - s_i², 1 on the diagonal,

plus the components of gU and gV outside the spans of U and V, divided by S. In the complex case the vectors are
determined up to a phase per singular value; a loss that depends on it has no derivative, and its gradient raises
RuntimeError.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.creation.filled import zeroed
from candelabra._operators.creation.matrices import new_eye
from candelabra._operators.linalg.factorizations.qr import linalg_qr
from candelabra._operators.linalg.rules import check_matrix, check_tensor, diagonal, floating, matrices
from candelabra._operators.shapes.joining import cat
from candelabra._operators.value_checks import raise_if_nonzero
from candelabra._random.generator import default_generator
from candelabra._records.autocasting import Autocast
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra._records.promotion import real_part, same
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]
FLOATING = floating("linalg.svd")


class SVD(NamedTuple):
    """Left vectors as columns, singular values in descending order, right vectors as conjugated rows."""

    U: Tensor
    S: Tensor
    Vh: Tensor


@by
def _svd_shapes(A: Tensor, full_matrices: bool, driver: str | None = None) -> tuple[Ints, Ints, Ints]:
    _check_driver(driver)
    shape = shape_of(A)
    check_matrix("linalg.svd", shape)
    lead, (m, n), k = shape[:-2], shape[-2:], min(shape[-2:])
    return (*lead, m, m if full_matrices else k), (*lead, k), (*lead, n if full_matrices else k, n)


def _check_driver(driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError("linalg.svd: no device has several drivers; expected driver=None")


@operator(
    _svd_shapes,
    promote=FLOATING,
    result=(same, real_part, same),
    public=False,
    out=True,
    autocast=Autocast(host="float32"),
)
def linalg_svd(A: Tensor, full_matrices: bool = True) -> SVD:
    """Return ``(U, S, Vh)`` with ``A = U diag(S) Vh`` for matrices (…, m, n).

    U and Vh are square with ``full_matrices``, else (…, m, k) and (…, k, n) with k = min(m, n). ``LinAlgError`` where
    the matrix is not finite.
    """
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
    if full_matrices:  # the vectors after the k-th are an arbitrary basis of the complement: no loss may depend on them
        U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
        g_U = None if g_U is None else g_U.narrow(-1, 0, k)
        g_Vh = None if g_Vh is None else g_Vh.narrow(-2, 0, k)
    if g_U is None and g_Vh is None:
        assert g_S is not None  # at least one of the three gradients exists
        return (U * g_S.unsqueeze(-2)) @ Vh
    left, right = S.unsqueeze(-1), S.unsqueeze(-2)
    skew_U = None if g_U is None else _skew(U.mH @ g_U)
    skew_V = None if g_Vh is None else _skew(Vh @ g_Vh.mH)
    _check_phase(skew_U, skew_V)
    gap = right * right - left * left + new_eye(S, k, k)
    inner = skew_U * right / gap if skew_U is not None else None
    if skew_V is not None:
        inner = left * skew_V / gap if inner is None else inner + left * skew_V / gap
    assert inner is not None
    if g_S is not None:
        inner = inner + g_S.diag_embed()
    if skew_U is not None and skew_V is not None and skew_U.is_complex():
        inner = inner + (skew_U.diagonal(0, -2, -1) / (S * 2)).diag_embed()
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


def _check_phase(skew_U: Tensor | None, skew_V: Tensor | None) -> None:
    skews = [x.detach() for x in (skew_U, skew_V) if x is not None]
    if not skews[0].is_complex():
        return
    total = skews[0] if len(skews) == 1 else skews[0] + skews[1]
    raise_if_nonzero(
        (total.diagonal(0, -2, -1).imag.abs() > 1e-2).any(),
        "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The "
        "specified loss function depends on this phase term, making it ill-defined.",
        RuntimeError,
    )


linalg_svd.vjp(A=_svd_back)


def _svd_along(t_A: Tensor, U: Tensor, S: Tensor, Vh: Tensor, full_matrices: bool) -> tuple[Any, Tensor, Any]:
    k = S.shape[-1]
    U, U_rest = U.narrow(-1, 0, k), U.narrow(-1, k, U.shape[-1] - k)
    Vh, Vh_rest = Vh.narrow(-2, 0, k), Vh.narrow(-2, k, Vh.shape[-2] - k)
    left, right = S.unsqueeze(-1), S.unsqueeze(-2)
    along_V = t_A @ Vh.mH
    inner = U.mH @ along_V
    gap = right * right - left * left + new_eye(S, k, k)
    quotient = inner * (1 - new_eye(S, k, k)) / gap

    def to_U() -> Tensor:
        out = U @ _skew(quotient * right) + (along_V - U @ inner) / right
        if U.is_complex():
            out = out + U * (inner.diagonal(0, -2, -1).imag * 1j / S).unsqueeze(-2)
        return cat([out, zeroed(U_rest)], -1)

    def to_Vh() -> Tensor:
        along_U = U.mH @ t_A
        out = (along_U - inner @ Vh) / left - _skew(quotient * left) @ Vh
        return cat([out, zeroed(Vh_rest)], -2)

    return to_U, inner.diagonal(0, -2, -1).real, to_Vh


linalg_svd.jvp(_svd_along)


@operator(_svd_shapes, promote=FLOATING, result=(same, real_part, same), public=False, out=True)
def linalg_svd_driver(A: Tensor, full_matrices: bool = True, *, driver: str | None) -> SVD:
    """Raise ``RuntimeError`` unless ``driver`` is None."""
    _check_driver(driver)
    return linalg_svd(A, full_matrices)


linalg_svd_overloads = overloads("linalg_svd", linalg_svd, linalg_svd_driver, namespace="linalg")


class SVDOfColumns(NamedTuple):
    """Left and right singular vectors as columns, and the singular values."""

    U: Tensor
    S: Tensor
    V: Tensor


@by
def _older_shapes(input: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Ints, Ints, Ints]:
    shape = shape_of(input)
    if len(shape) < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {len(shape)} dimensions instead"
        )
    lead, (m, n), k = shape[:-2], shape[-2:], min(shape[-2:])
    square = not (some and compute_uv)
    return (*lead, m, m if square else k), (*lead, k), (*lead, n, n if square else k)


@operator(_older_shapes, promote=FLOATING, result=(same, real_part, same), out=True, autocast=Autocast(host="float32"))
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> SVDOfColumns:
    """Return ``(U, S, V)`` with ``input = U diag(S) Vᴴ``; U and V square unless ``some``, zeros unless ``compute_uv``.

    This is the older form of ``linalg.svd``, which returns Vᴴ.
    """
    shapes = _older_shapes(svd, (input, some, compute_uv))
    if not compute_uv:
        return SVDOfColumns(input.new_zeros(shapes[0]), linalg_svdvals(input), input.new_zeros(shapes[2]))
    U, S, Vh = linalg_svd(input, not some)
    return SVDOfColumns(U, S, Vh.mH)


# -- singular values only ---------------------------------------------------------------------------------------------
@operator(
    matrices("linalg.svd", diagonal),
    promote=FLOATING,
    result=real_part,
    public=False,
    autocast=Autocast(host="float32"),
)
def linalg_svdvals(A: Tensor) -> Tensor:
    """Return the singular values of (…, m, n) matrices, (…, min(m, n)), in descending order."""
    ...


def _svdvals_back(g: Tensor, A: Tensor) -> Tensor:
    U, _, Vh = linalg_svd(A, False)
    return (U * g.unsqueeze(-2)) @ Vh


linalg_svdvals.vjp(A=_svdvals_back)


def _svdvals_along(t_A: Tensor, A: Tensor) -> tuple[Tensor, Tensor]:
    U, S, Vh = linalg_svd(A, False)
    return S, (U.conj() * (t_A @ Vh.mH)).sum(-2).real


linalg_svdvals.jvp(_svdvals_along, joint=True)


@operator(matrices("linalg.svd", diagonal), promote=FLOATING, result=real_part, public=False)
def linalg_svdvals_driver(A: Tensor, *, driver: str | None) -> Tensor:
    """Raise ``RuntimeError`` unless ``driver`` is None."""
    _check_driver(driver)
    return linalg_svdvals(A)


linalg_svdvals_overloads = overloads("linalg_svdvals", linalg_svdvals, linalg_svdvals_driver, namespace="linalg")


# -- leading singular values of large matrices ------------------------------------------------------------------------
class LowRank(NamedTuple):
    """Left and right singular vectors as columns, and the singular values, in descending order."""

    U: Tensor
    S: Tensor
    V: Tensor


def _range(A: Tensor, q: int, niter: int) -> Tensor:
    """Return orthonormal columns (…, m, q) whose span approximates the range of A, by subspace iteration from a random
    start.

    Halko, Martinsson and Tropp, Finding structure with randomness, 2011, algorithm 4.4.
    """
    Q = linalg_qr(A @ A.new_empty((*A.shape[:-2], A.shape[-1], q)).normal_()).Q
    for _ in range(niter):
        Q = linalg_qr(A.mH @ Q).Q
        Q = linalg_qr(A @ Q).Q
    return Q


@public(method=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> LowRank:
    """Return approximations of the ``q`` leading singular values and vectors of A - M: ``A - M ≈ U diag(S) Vᴴ``.

    ``niter`` subspace iterations follow a random projection (Halko, Martinsson and Tropp, 2011, algorithm 5.1); M
    broadcasts to A, (…, m, n).
    """
    check_tensor("svd_lowrank", A)
    count, rounds, limit = 6 if q is None else q, 2 if niter is None else niter, min(A.shape[-2:])
    if not 0 <= count <= limit:
        raise ValueError(f"q(={count}) must be non-negative integer and not greater than min(m, n)={limit}")
    if rounds < 0:
        raise ValueError(f"niter(={rounds}) must be non-negative integer")
    if rounds >= 1 << 31:
        raise ValueError(f"niter(={rounds}) must be less than 2**31")
    X = A if M is None else A - M
    wide = X.shape[-2] < X.shape[-1]
    if wide:
        X = X.mH
    generator = default_generator(A._instance)
    before = generator.get_offset()
    try:
        Q = _range(X, count, rounds)
        U, S, Vh = linalg_svd(Q.mH @ X, False)
    except Exception:
        generator.give_back(before)
        raise
    U, V = Q @ U, Vh.mH
    return LowRank(V, S, U) if wide else LowRank(U, S, V)


@public(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> LowRank:
    """Return the principal components of the rows of A, (…, m, n).

    This is :func:`candelabra.svd_lowrank` of A minus the means of its columns. The columns of V are the directions;
    ``q`` of them, at most min(m, n), by default 6.
    """
    check_tensor("pca_lowrank", A)
    count = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A - A.mean(-2, True) if center else A, count, niter)
