"""The QR factorization, and Householder reflections.

For m >= n, with syminvadj(X) = X + Xᴴ with half the real diagonal (Walter and Lehmann, Algorithmic differentiation of
linear algebra functions, 2018):

    gA = [ gQ + Q syminvadj(triu(gR Rᴴ - Qᴴ gQ)) ] R⁻ᴴ.

A wide matrix is A = (X | Y) = Q (R₁ | R₂), where R₂ = Qᴴ Y: X gets the above with gQ + Y gR₂ᴴ, and Y gets Q gR₂.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, NamedTuple
from candelabra._operators.creation.matrices import new_eye
from candelabra._operators.linalg.rules import check_matrix, diagonal, floating, matrices, matrix
from candelabra._operators.linalg.solvers import triangular_solution
from candelabra._operators.shapes.joining import cat
from candelabra._records.autocasting import Autocast
from candelabra._records.overloads import overloads
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


class QR(NamedTuple):
    """Orthonormal columns, and an upper triangle."""

    Q: Tensor
    R: Tensor


@by
def _qr_shapes(A: Tensor, mode: str) -> tuple[Ints, Ints]:
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    shape = shape_of(A)
    check_matrix("linalg.qr", shape)
    lead, (m, n), k = shape[:-2], shape[-2:], min(shape[-2:])
    columns = m if mode == "complete" else k
    return (0,) if mode == "r" else (*lead, m, columns), (*lead, columns, n)


@operator(_qr_shapes, promote=floating("linalg.qr"), public=False, out=True, autocast=Autocast(host="float32"))
def linalg_qr(A: Tensor, mode: str = "reduced") -> QR:
    """Return ``(Q, R)`` with ``A = Q R`` for matrices (…, m, n), Q with orthonormal columns, R upper triangular.

    ``"reduced"``: Q is (…, m, k) with k = min(m, n); ``"complete"``: (…, m, m); ``"r"``: Q is empty.
    """
    ...


def _differentiable(Q: Tensor, R: Tensor, mode: str) -> tuple[int, int]:
    """Return the shape of the matrix. Raise ``RuntimeError`` for a mode without a derivative."""
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
            "mode='reduced') if you are going to require its gradient"
        )
    m, n = Q.shape[-2], R.shape[-1]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    return m, n


def _qr_back(Q: Tensor, R: Tensor, mode: str, g_Q: Tensor | None = None, g_R: Tensor | None = None) -> Tensor:
    m, n = _differentiable(Q, R, mode)
    if m >= n:
        return _tall_back(Q, R, g_Q, g_R)
    square, rest = R.narrow(-1, 0, m), R.narrow(-1, m, n - m)
    if g_R is None:
        first = _tall_back(Q, square, g_Q, None)
        return cat([first, first.new_zeros((*first.shape[:-1], n - m))], -1)
    g_rest = g_R.narrow(-1, m, n - m)
    through = (Q @ rest) @ g_rest.mH
    first = _tall_back(Q, square, through if g_Q is None else g_Q + through, g_R.narrow(-1, 0, m))
    return cat([first, Q @ g_rest], -1)


def _tall_back(Q: Tensor, R: Tensor, g_Q: Tensor | None, g_R: Tensor | None) -> Tensor:
    inner = None if g_R is None else g_R @ R.mH
    if g_Q is not None:
        inner = -(Q.mH @ g_Q) if inner is None else inner - Q.mH @ g_Q
    assert inner is not None  # at least one of the two gradients exists
    upper = inner.triu()
    inner = upper + upper.mH - _real_diagonal(upper)
    out = Q @ inner
    if g_Q is not None:
        out = out + g_Q
    return triangular_solution(R, out.mH, True, False).mH


def _real_diagonal(x: Tensor) -> Tensor:
    diagonal = x.diagonal(0, -2, -1)
    return (diagonal.real if x.is_complex() else diagonal).diag_embed()


linalg_qr.vjp(A=_qr_back)


def _qr_along(t_A: Tensor, Q: Tensor, R: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    # dA R⁻¹ = dQ + Q (dR R⁻¹), where Qᴴ dQ is antisymmetric and dR R⁻¹ is an upper triangle with a real diagonal.
    m, n = _differentiable(Q, R, mode)
    square, t_square = (R, t_A) if m >= n else (R.narrow(-1, 0, m), t_A.narrow(-1, 0, m))
    quotient = triangular_solution(square.mH, t_square.mH, False, False).mH
    inner = Q.mH @ quotient
    upper = inner.triu(1) + inner.tril(-1).mH + _real_diagonal(inner)
    t_Q, t_R = quotient - Q @ upper, upper @ square
    if m < n:
        rest, t_rest = R.narrow(-1, m, n - m), t_A.narrow(-1, m, n - m)
        t_R = cat([t_R, Q.mH @ t_rest + t_Q.mH @ (Q @ rest)], -1)
    return t_Q, t_R


linalg_qr.jvp(_qr_along)


@operator(_qr_shapes, promote=floating("linalg.qr"), public=False, out=True)
def linalg_qr_mode(A: Tensor, mode: str) -> QR:
    """Raise ``RuntimeError`` for another mode."""
    _qr_shapes(linalg_qr_mode, (A, mode))
    return linalg_qr(A, mode)


linalg_qr_overloads = overloads("linalg_qr", (linalg_qr, "A"), linalg_qr_mode, namespace="linalg")


@operator(
    by(lambda input, some=True: _qr_shapes(None, (input, "reduced" if some else "complete"))),
    promote=floating("linalg.qr"),
    out=True,
    autocast=Autocast(host="float32"),
)
def qr(input: Tensor, some: bool = True) -> QR:
    """Return ``(Q, R)`` with ``input = Q R``, Q square unless ``some``; see ``linalg.qr``."""
    return linalg_qr(input, "reduced" if some else "complete")


# -- Householder reflections ------------------------------------------------------------------------------------------
class Reflections(NamedTuple):
    """R above, the vectors of the reflections below the diagonal; and the reflections' factors."""

    a: Tensor
    tau: Tensor


@operator(matrices("torch.geqrf", matrix, diagonal), promote=floating("torch.geqrf"), public=False, out=True)
def linalg_geqrf(input: Tensor) -> Reflections:
    """Return ``(a, tau)`` of matrices (…, m, n): R on and above the diagonal of a, reflections below; their factors (…,
    k).

    ``linalg.householder_product(a, tau)`` is Q. There is no derivative: use ``linalg.qr``.
    """
    ...


linalg_geqrf.no_gradient("the derivative for 'geqrf' is not implemented")
geqrf = overloads("geqrf", linalg_geqrf)


@by
def _product_shape(input: Tensor, tau: Tensor) -> Ints:
    shape, factors = shape_of(input), shape_of(tau)
    name = "torch.linalg.householder_product"
    if len(shape) < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if shape[-2] < shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if not factors or shape[-1] < factors[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if shape[:-2] != factors[:-1]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(factors)}"
        )
    return shape


def _vectors(input: Tensor) -> Tensor:
    """Return the reflections' vectors as columns: ones on the diagonal, zeros above."""
    return input.tril(-1) + new_eye(input, input.shape[-2], input.shape[-1])


def _reflected(vectors: Tensor, tau: Tensor, x: Tensor, order: range) -> Tensor:
    """Return ``x`` with the reflections ``1 - tau v vᴴ`` applied in that order."""
    for i in order:
        v = vectors.narrow(-1, i, 1)
        x = x - v @ ((v.mH @ x) * tau.narrow(-1, i, 1).unsqueeze(-1))
    return x


@operator(
    _product_shape,
    promote=floating("torch.linalg.householder_product"),
    namespace="linalg",
    method="orgqr",
    aliases=("orgqr",),
    autocast=Autocast(host="float32"),
)
def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """Return the first n columns of the product of reflections: Q of ``geqrf``'s ``(a, tau)``, for ``input`` (…, m, n).

    ``tau`` is (…, k) with k <= n <= m.
    """
    _product_shape(linalg_householder_product, (input, tau))
    m, n = input.shape[-2:]
    start = new_eye(input, m, n).expand(input.shape)
    product = _reflected(_vectors(input), tau, start, range(tau.shape[-1] - 1, -1, -1))
    return product if product is not start else start.clone()


@by
def _applied_shape(input: Tensor, tau: Tensor, other: Tensor, left: bool, transpose: bool) -> Ints:
    side = -2 if left else -1
    for name, value in (("input", input), ("other", other)):
        if len(shape_of(value)) < 2:
            raise RuntimeError(f"torch.ormqr: {name} must have at least 2 dimensions.")
    size = shape_of(other)[side]
    if size < shape_of(tau)[-1]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if size != shape_of(input)[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    return shape_of(other)


@operator(_applied_shape, promote=floating("torch.ormqr"), public=False)
def linalg_ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Return ``Q @ other`` with the square Q of all reflections in ``(input, tau)``; ``other @ Q`` with ``left=False``.

    With ``transpose``, Qᴴ replaces Q.
    """
    _applied_shape(linalg_ormqr, (input, tau, other, left, transpose))
    x = other if left else other.mH
    # Q is the product of the reflections from first to last, so the last is applied to x first; (x Q)ᴴ = Qᴴ xᴴ.
    backwards = left is transpose
    steps = range(tau.shape[-1]) if backwards else range(tau.shape[-1] - 1, -1, -1)
    product = _reflected(_vectors(input), tau.conj() if backwards else tau, x, steps)
    return product.clone() if product is other else product if left else product.mH


ormqr = overloads("ormqr", linalg_ormqr)
