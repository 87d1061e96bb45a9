"""Determinants.

d det(A) = det(A) tr(A⁻¹ dA), so gA = conj(g det) A⁻ᴴ up to conjugation. Where A is singular, with A = U S Vᴴ, the
adjugate takes the place of det(A) A⁻¹: the diagonal of the products of all *other* singular values between Vᴴ and U.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.elementwise.complex import conj
from candelabra._operators.elementwise.selection import where
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.linalg.inversion import linalg_inv_ex
from candelabra._operators.linalg.requirements import batch, check_square, factored, square
from candelabra._operators.linalg.singular import linalg_svd
from candelabra._operators.linalg.triangular import identity
from candelabra._records.callables import public
from candelabra._records.promotion import real_part, same
from candelabra._records.record import operator
from candelabra._records.rules import shape_of

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@operator(square("linalg.det", batch), promote=factored("linalg.det"), namespace="linalg")
def linalg_det(A: Tensor) -> Tensor:
    """The determinants of (…, n, n) matrices."""
    ...


def _det_back(g: Tensor, A: Tensor, out: Tensor) -> Tensor:
    g = g.unsqueeze(-1)
    if not bool((out == 0).any()):
        return linalg_inv_ex(A).inverse.mH * (g * conj(out).unsqueeze(-1)).unsqueeze(-1)
    U, S, Vh = linalg_svd(A, True)
    phase = conj(linalg_det(U) * linalg_det(Vh)).unsqueeze(-1)
    return (U * (phase * g * _others(S)).unsqueeze(-2)) @ Vh


def _others(x: Tensor) -> Tensor:
    """Along the last dim, the product of all the other elements: no division, so that zeros are right."""
    n = x.shape[-1]
    grid = where(identity(n, x).bool(), 1.0, x.unsqueeze(-2).expand((*x.shape[:-1], n, n)))
    return grid.prod(-1)


linalg_det.vjp(A=_det_back)


class SignAndLogarithm(NamedTuple):
    """Of a determinant the sign (of a complex one the phase; 0 of 0), and the logarithm of the absolute value."""

    sign: Tensor
    logabsdet: Tensor


@operator(
    square("linalg.slogdet", batch, batch),
    promote=factored("linalg.slogdet"),
    result=(same, real_part),
    public=False,
    method=False,
)
def linalg_slogdet(A: Tensor) -> SignAndLogarithm:
    """The sign and the logarithm of the absolute value of determinants."""
    ...


def _slogdet_back(A: Tensor, sign: Tensor, g_sign: Tensor, g_logabsdet: Tensor) -> Tensor:
    # With t = tr(A⁻¹ dA): d log|det| = Re t and d sign = i sign Im t, which is 0 for real matrices.
    weight = g_logabsdet
    if A.is_complex():
        turn = (conj(g_sign) * sign).imag
        weight = g_logabsdet - turn * 1j
    return linalg_inv_ex(A).inverse.mH * weight.unsqueeze(-1).unsqueeze(-1)


linalg_slogdet.vjp(A=_slogdet_back)


@public(namespace="linalg")
@takes_tensors("linalg_slogdet")
def slogdet(A: Tensor, *, out: Any = None) -> SignAndLogarithm:
    """``(sign, logabsdet)`` of the determinants of (…, n, n) matrices, which may be too large or small for the dtype.

    The sign is 0 and the logarithm -inf where the matrix is singular; of complex matrices the sign is a phase.
    """
    return delivered("linalg.slogdet", linalg_slogdet(A), out)


@public
@takes_tensors("logdet")
def logdet(input: Tensor) -> Tensor:
    """The logarithms of the determinants of (…, n, n) matrices: NaN of negative ones, -inf of 0."""
    check_square("logdet", shape_of(input))
    factored("logdet")(input.dtype)
    sign, size = linalg_slogdet(input)
    return sign.log() + size if input.is_complex() else where(sign == -1, float("nan"), size)
