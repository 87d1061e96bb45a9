"""Determinants.

d det(A) = det(A) tr(A⁻¹ dA), so gA = g conj(det) A⁻ᴴ. If A = U S Vᴴ is singular, the adjugate replaces det(A) A⁻¹: the
diagonal matrix with the products of all *other* singular values, between Vᴴ and U.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, NamedTuple
from candelabra._operators.creation.filled import new_full
from candelabra._operators.creation.matrices import new_eye
from candelabra._operators.creation.ranges import new_arange
from candelabra._operators.elementwise.selection import where
from candelabra._operators.linalg.factorizations.svd import linalg_svd
from candelabra._operators.linalg.inverses import linalg_inv_ex
from candelabra._operators.linalg.rules import check_square, floating, scalar, square
from candelabra._operators.reductions.sums import check_tangent_shape
from candelabra._records.derivative import applied
from candelabra._records.promotion import real_part, same
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor

# -- the determinant --------------------------------------------------------------------------------------------------
_det_shape = square("linalg.det", scalar)


@operator(_det_shape, promote=floating("linalg.det"), namespace="linalg")
def linalg_det(A: Tensor) -> Tensor:
    """Return the determinants of (…, n, n) matrices."""
    ...


@operator(_det_shape, promote=floating("linalg.det"), out=False)
def det(input: Tensor) -> Tensor:
    """Return the determinants of (…, n, n) matrices; see ``linalg.det``."""
    return linalg_det(input)


@operator(by(lambda grad, A, out: shape_of(A)), promote=floating("linalg.det"), public=False)
def linalg_det_backward(grad: Tensor, A: Tensor, out: Tensor) -> Tensor:
    """Return the gradient of A whose determinant is ``out``, by the inverse of a regular matrix and the adjugate of a
    singular one.

    Both are computed for each matrix, and one is selected. Where the other one is selected, the identity or a diagonal
    matrix of distinct numbers replaces the matrix, so that values and derivatives are finite.
    """
    n = A.shape[-1]
    one, weight = new_eye(A, n, n), grad.unsqueeze(-1)
    singular = (out == 0).unsqueeze(-1).unsqueeze(-1)
    inverse = linalg_inv_ex(where(singular, one, A)).inverse
    regular = inverse.mH * (weight * out.conj().unsqueeze(-1)).unsqueeze(-1)
    U, S, Vh = linalg_svd(where(singular, A, one * new_arange(A, 1, 1, n)))
    phase = (linalg_det(U) * linalg_det(Vh)).conj().unsqueeze(-1)
    adjugate = (U * (phase * weight * _products_of_others(S)).unsqueeze(-2)) @ Vh
    return where(singular, adjugate, regular)


def _products_of_others(x: Tensor) -> Tensor:
    """Return, for each element, the product of all other elements along the last dim, without division, so that zeros
    are exact.
    """
    n = x.shape[-1]
    grid = where(new_eye(x, n, n) != 0, 1.0, x.unsqueeze(-2).expand((*x.shape[:-1], n, n)))
    return grid.prod(-1)


linalg_det.vjp(A=applied(linalg_det_backward, "g", "A", "out"))


class DeterminantAlong(NamedTuple):
    """A determinant, and its derivative along a tangent."""

    determinant: Tensor
    slope: Tensor


@by
def _det_along_shapes(t_A: Tensor, A: Tensor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    check_tangent_shape("linalg.det", t_A, A)
    check_square("linalg.det", shape_of(A))
    return shape_of(A)[:-2], shape_of(A)[:-2]


@operator(_det_along_shapes, promote=floating("linalg.det"), result=(same, same), method=False, public=False)
def linalg_det_along(t_A: Tensor, A: Tensor) -> DeterminantAlong:
    """Return :func:`linalg_det`, and its derivative along ``t_A``.

    One operator, so that a device factorizes each matrix once.
    """
    _det_along_shapes(linalg_det_along, (t_A, A))
    out = linalg_det(A)
    gradient = linalg_det_backward(new_full(out, tuple(out.shape), 1), A, out)
    return DeterminantAlong(out, (gradient.conj() * t_A).sum((-2, -1)))


linalg_det.jvp(lambda t_A, A: linalg_det_along.canonical(t_A, A), joint=True)


# -- sign and logarithm -----------------------------------------------------------------------------------------------
class SignAndLogarithm(NamedTuple):
    """The sign of a determinant (the phase if it is complex, 0 if it is 0), and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


_slogdet_shapes = square("linalg.slogdet", scalar, scalar)


@operator(_slogdet_shapes, promote=floating("linalg.slogdet"), result=(same, real_part), namespace="linalg", out=True)
def linalg_slogdet(A: Tensor) -> SignAndLogarithm:
    """Return ``(sign, logabsdet)`` of the determinants of (…, n, n) matrices, which may be too large or small for the
    dtype.

    The sign is 0 and the logarithm -inf if the matrix is singular. For complex matrices the sign is a phase.
    """
    ...


def _slogdet_back(A: Tensor, sign: Tensor, g_sign: Tensor, g_logabsdet: Tensor) -> Tensor:
    # With t = tr(A⁻¹ dA): d log|det| = Re t and d sign = i sign Im t, which is 0 for real matrices.
    weight = g_logabsdet
    if A.is_complex():
        weight = g_logabsdet - (g_sign.conj() * sign).imag * 1j
    return linalg_inv_ex(A).inverse.mH * weight.unsqueeze(-1).unsqueeze(-1)


linalg_slogdet.vjp(A=_slogdet_back)


class LogarithmAlong(NamedTuple):
    """Sign and logarithm of a determinant, and the trace of A⁻¹ dA."""

    sign: Tensor
    logabsdet: Tensor
    trace: Tensor


@by
def _slogdet_along_shapes(t_A: Tensor, A: Tensor) -> tuple[tuple[int, ...], ...]:
    check_tangent_shape("linalg.slogdet", t_A, A)
    check_square("linalg.slogdet", shape_of(A))
    return (shape_of(A)[:-2],) * 3


@operator(
    _slogdet_along_shapes,
    promote=floating("linalg.slogdet"),
    result=(same, real_part, same),
    method=False,
    public=False,
)
def linalg_slogdet_along(t_A: Tensor, A: Tensor) -> LogarithmAlong:
    """Return :func:`linalg_slogdet`, and the derivative of the logarithm of the determinant along ``t_A``.

    One operator, so that a device factorizes each matrix once.
    """
    _slogdet_along_shapes(linalg_slogdet_along, (t_A, A))
    sign, logabsdet = linalg_slogdet(A)
    return LogarithmAlong(sign, logabsdet, (linalg_inv_ex(A).inverse.mT * t_A).sum((-2, -1)))


def _slogdet_along(t_A: Tensor, A: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor | None, Tensor]]:
    sign, logabsdet, trace = linalg_slogdet_along.canonical(t_A, A)
    slopes = (sign * trace.imag * 1j, trace.real) if A.is_complex() else (None, trace)
    return (sign, logabsdet), slopes


linalg_slogdet.jvp(_slogdet_along, joint=True)


@operator(_slogdet_shapes, promote=floating("linalg.slogdet"), result=(same, real_part), out=True)
def slogdet(input: Tensor) -> SignAndLogarithm:
    """Return sign and logarithm of the determinants of (…, n, n) matrices; see ``linalg.slogdet``."""
    return linalg_slogdet(input)


@operator(square("logdet", scalar), promote=floating("logdet"), out=False)
def logdet(input: Tensor) -> Tensor:
    """Return the logarithms of the determinants of (…, n, n) matrices: NaN for negative ones, -inf for 0."""
    check_square("logdet", shape_of(input))
    sign, size = linalg_slogdet(input)
    return sign.log() + size if input.is_complex() else where(sign == -1, float("nan"), size)
