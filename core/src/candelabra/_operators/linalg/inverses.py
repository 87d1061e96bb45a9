"""Inverses and pseudo-inverses.

With X = A⁻¹:  dX = -X dA X,  so gA = -Xᴴ g Xᴴ.
"""

from __future__ import annotations

from math import prod

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._operators.elementwise.selection import where
from candelabra._operators.linalg import rules
from candelabra._operators.linalg.eigenvalues import linalg_eigh
from candelabra._operators.linalg.factorizations.svd import linalg_svd
from candelabra._operators.linalg.ranks import as_tolerance, check_tolerances, tolerance
from candelabra._records.autocasting import Autocast
from candelabra._records.overloads import overloads
from candelabra._records.promotion import same, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import FLOATING

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor

Ints = tuple[int, ...]


class Inverse(NamedTuple):
    """The inverses, and per matrix 0 or the index (from 1) of the pivot that is zero."""

    inverse: Tensor
    info: Tensor


RULE = rules.square("linalg.inv", rules.matrix, rules.scalar)


@operator(
    RULE,
    promote=rules.floating("linalg.inv"),
    result=(same, rules.info_dtype),
    public=False,
    out=True,
    autocast=Autocast(host="float32"),
)
def linalg_inv_ex(A: Tensor) -> Inverse:
    """Return the inverses of (…, n, n) matrices, and an int32 info per matrix: 0, or the index (from 1) of the pivot
    that is zero.

    It uses LU factorization. A singular matrix raises no error; its inverse contains the results of divisions by zero.
    """
    ...


def _inverse_back(g_inverse: Tensor, inverse: Tensor) -> Tensor:
    adjoint = inverse.mH
    return -(adjoint @ g_inverse @ adjoint)


linalg_inv_ex.vjp(A=_inverse_back)
linalg_inv_ex.jvp(lambda t_A, inverse: (-(inverse @ t_A @ inverse), None))


@operator(RULE, promote=rules.floating("linalg.inv"), result=(same, rules.info_dtype), public=False, out=True)
def linalg_inv_checked(A: Tensor, *, check_errors: bool) -> Inverse:
    """Raise ``LinAlgError`` for a singular matrix if ``check_errors``."""
    result = linalg_inv_ex(A)
    if check_errors:
        rules.check_info(result.info, "linalg.inv_ex", rules.SINGULAR_MATRIX)
    return result


inv_ex = overloads("linalg_inv_ex", linalg_inv_ex, linalg_inv_checked, namespace="linalg")


@operator(
    rules.square("linalg.inv", rules.matrix),
    promote=rules.floating("linalg.inv"),
    namespace="linalg",
    autocast=Autocast(host="float32"),
)
def linalg_inv(A: Tensor) -> Tensor:
    """Return the inverses of (…, n, n) matrices; Raises ``LinAlgError`` if one is singular."""
    result = linalg_inv_ex(A)
    rules.check_info(result.info, "linalg.inv", rules.SINGULAR_MATRIX)
    return result.inverse


@operator(
    rules.square("linalg.inv", rules.matrix), promote=rules.floating("linalg.inv"), autocast=Autocast(host="float32")
)
def inverse(input: Tensor) -> Tensor:
    """Return the inverses of (…, n, n) matrices; see ``linalg.inv``."""
    return linalg_inv(input)


@by
def _tensorinv_shape(input: Tensor, ind: int) -> Ints:
    shape = shape_of(input)
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    m, n = prod(shape[:ind]), prod(shape[ind:])
    if m != n:
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {n} "
            f"!= {m}"
        )
    return (*shape[ind:], *shape[:ind])


@operator(_tensorinv_shape, promote=rules.floating("linalg.inv"), namespace="linalg", autocast=Autocast(host="float32"))
def linalg_tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of ``tensordot`` over the first ``ind`` dims.

    The first ``ind`` dims are the rows of a square matrix, the others its columns; the dims of the result are in the
    other order. Raises ``LinAlgError`` if the matrix is singular.
    """
    shape = _tensorinv_shape(linalg_tensorinv, (input, ind))
    n = prod(shape_of(input)[:ind])
    return linalg_inv(input.reshape((n, n))).reshape(shape)


# -- pseudo-inverses --------------------------------------------------------------------------------------------------
@by
def _pinv_shape(input: Tensor, rcond: Any, hermitian: bool = False, atol: Any = None, rtol: Any = None) -> Ints:
    shape, d = shape_of(input), input.dtype
    if len(shape) < 2 or d.category < FLOATING or d.is_half:
        raise RuntimeError(
            f"linalg.pinv({d.title}{{{list(shape)}}}): expected a tensor with 2 or more dimensions of float, double, "
            "cfloat or cdouble types"
        )
    if hermitian:
        rules.check_square("linalg.pinv", shape)
    check_tolerances("torch.linalg.pinv", atol=atol, rtol=rtol if rcond is None else rcond)
    return (*shape[:-2], shape[-1], shape[-2])


@operator(_pinv_shape, promote=unpromoted, namespace="linalg")
def linalg_pinv(
    input: Tensor,
    rcond: Tensor | Number | None = None,
    hermitian: bool = False,
    *,
    atol: Tensor | Number | None = None,
    rtol: Tensor | Number | None = None,
) -> Tensor:
    """Return the pseudo-inverses of (…, m, n) matrices, (…, n, m), by singular values (``hermitian``: by eigenvalues).

    Those up to ``max(atol, rtol * largest)`` are treated as zero. Tolerances are numbers, or tensors that broadcast to
    the batch; ``rcond`` is the older name of ``rtol``.
    """
    _pinv_shape(linalg_pinv, (input, rcond, hermitian, atol, rtol))
    relative = rtol if rcond is None else rcond
    return pseudo_inverse(input, as_tolerance(input, atol), as_tolerance(input, relative), hermitian)


@operator(_pinv_shape, promote=unpromoted, out=False, autocast=Autocast(host="float32"))
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return the pseudo-inverses of (…, m, n) matrices; singular values up to ``rcond`` times the largest count as
    zero.
    """
    return linalg_pinv(input, rcond)


@operator(
    by(lambda input, atol, rtol, hermitian: _pinv_shape(None, (input, rtol, hermitian, atol))),
    promote=unpromoted,
    public=False,
)
def pseudo_inverse(input: Tensor, atol: Tensor | None, rtol: Tensor | None, hermitian: bool) -> Tensor:
    """Return V diag(1/s) Uᴴ, where 1/s is 0 for singular values s that are treated as zero. Moore 1920, Penrose
    1955.
    """
    if not input.numel():
        return input.mT.clone()
    if hermitian:
        values, U = linalg_eigh(input)
        Vh, size = U.mH, values.abs()
    else:
        U, values, Vh = linalg_svd(input, False)
        size = values
    keep = size > tolerance(input, size.amax(-1), atol, rtol).unsqueeze(-1)
    reciprocal = where(keep, 1 / values, 0.0)
    return (Vh.mH * reciprocal.unsqueeze(-2)) @ U.mH


def pinv_back(g: Tensor, input: Tensor, out: Tensor) -> Tensor:
    """Return the gradient of a matrix whose pseudo-inverse is ``out``.

    Golub and Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems, 1973. The shorter
    side is multiplied first.
    """
    P, Ph, gh = out, out.mH, g.mH
    if input.shape[-2] <= input.shape[-1]:
        K = gh @ P
        KPh = K @ Ph
        return -(P @ K).mH + KPh - (input @ P) @ KPh + (Ph @ P) @ (gh - K @ input)
    K = P @ gh
    PhK = Ph @ K
    return -(K @ P).mH + (gh - input @ K) @ P @ Ph + PhK - (PhK @ P) @ input


pseudo_inverse.vjp(input=pinv_back)
