"""What is read off singular values: condition numbers, ranks, pseudo-inverses."""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._dispatch.promote import title
from candelabra._operators.elementwise.selection import where
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.linalg.inversion import linalg_inv_ex
from candelabra._operators.linalg.norms import norm as matrix_or_vector_norm
from candelabra._operators.linalg.requirements import check_matrix, check_square, factored
from candelabra._operators.linalg.singular import linalg_svd, linalg_svdvals
from candelabra._operators.linalg.spectra import linalg_eigh, linalg_eigvalsh
from candelabra._records.callables import public
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import FLOATING, finfo

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@public(namespace="linalg")
@takes_tensors("linalg_cond")
def cond(input: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The condition numbers ``norm(A, p) * norm(inv(A), p)``; for None, 2 and -2 the quotient of singular values.

    inf where a matrix is singular. ``p``: None, ``"fro"``, ``"nuc"``, ±1, ±2, ±inf.
    """
    shape = shape_of(input)
    if len(shape) < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p is None or (not isinstance(p, str) and abs(p) == 2):
        if 0 in shape[-2:]:
            return delivered("linalg.cond", input.abs().sum((-2, -1)), out)
        values = linalg_svdvals(input)
        low, high = values.select(-1, -1), values.select(-1, 0)
        return delivered("linalg.cond", low / high if p == -2 else high / low, out)
    if not isinstance(p, str) and abs(p) not in (1, math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_square(f"linalg.cond(ord={p})", shape)
    if not shape[-1]:
        return delivered("linalg.cond", input.abs().sum((-2, -1)), out)
    inverse, info = linalg_inv_ex(input)
    singular, dims = info != 0, (-2, -1)
    inverse = where(singular.unsqueeze(-1).unsqueeze(-1), 0.0, inverse)  # infinities have no singular values
    found = matrix_or_vector_norm(input, p, dims) * matrix_or_vector_norm(inverse, p, dims)
    return delivered("linalg.cond", where(singular, math.inf, found), out)


# -- how small is zero ------------------------------------------------------------------------------------------------
def _tolerance(A: Tensor, largest: Tensor, atol: Any, rtol: Any) -> Tensor:
    """What counts as zero beside the largest singular value: ``max(atol, rtol * largest)``.

    By default ``rtol`` is the dtype's epsilon times the longer side, and 0 where an ``atol`` is given.
    """
    if rtol is None:
        default = finfo(A.dtype).eps * max(A.shape[-2:])
        given: Any = atol is not None and atol > 0
        rtol = default * (given.logical_not() if hasattr(atol, "_payload") else not given)
    bound: Tensor = largest * rtol
    if atol is None:
        return bound
    return bound.maximum(atol) if hasattr(atol, "_payload") else bound.clamp_min(atol)


def _check_tolerance(name: str, tolerances: dict[str, Any]) -> None:
    for word, value in tolerances.items():
        if hasattr(value, "_payload") and value.is_complex():
            raise RuntimeError(f"{name}: {word} tensor of complex type is not supported. Got {title(value.dtype)}")


@public(namespace="linalg")
@takes_tensors("linalg_matrix_rank")
def matrix_rank(
    input: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """How many singular values exceed ``max(atol, rtol * largest)``, int64; of Hermitian matrices eigenvalues are used.

    ``tol`` is the older name of ``atol`` with an ``rtol`` of 0. Tolerances are numbers, or tensors that broadcast to
    the batch. The default ``rtol`` is the dtype's epsilon times the longer side.
    """
    if len(shape_of(input)) < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    if tol is not None:
        atol, rtol = tol, 0.0
    _check_tolerance("torch.linalg.matrix_rank", {"atol": atol, "rtol": rtol})
    input = input.detach()
    values = linalg_eigvalsh(input, "L").abs() if hermitian else linalg_svdvals(input)
    if not values.shape[-1]:
        return delivered("linalg.matrix_rank", values.sum(-1).long(), out)
    bound = _tolerance(input, values.amax(-1), atol, rtol)
    return delivered("linalg.matrix_rank", (values > bound.unsqueeze(-1)).sum(-1), out)


@by
def _turned(input: Tensor, *_: Any) -> tuple[int, ...]:
    shape = shape_of(input)
    check_matrix("linalg.pinv", shape)
    return (*shape[:-2], shape[-1], shape[-2])


Tolerance = Any
"""A number, a tensor or None: a plain value to the dispatcher, it takes no part in promotion."""


@operator(_turned, promote=factored("linalg.pinv"), public=False, method=False)
def pseudo_inverse(input: Tensor, atol: Tolerance, rtol: Tolerance, hermitian: bool) -> Tensor:
    """V diag(1/s) Uᴴ, where 1/s is 0 for the s that count as zero. Moore 1920, Penrose 1955."""
    if not input.numel():
        return input.mT.clone()
    if hermitian:
        values, U = linalg_eigh(input, "L")
        Vh, size = U.mH, values.abs()
    else:
        U, values, Vh = linalg_svd(input, False)
        size = values
    keep = size > _tolerance(input, size.amax(-1), atol, rtol).unsqueeze(-1)
    inverse = where(keep, 1 / values, 0.0)
    return (Vh.mH * inverse.unsqueeze(-2)) @ U.mH


def pinv_back(g: Tensor, input: Tensor, out: Tensor) -> Tensor:
    """The gradient of a matrix whose pseudo-inverse is ``out``.

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


@public(namespace="linalg")
@takes_tensors("linalg_pinv")
def pinv(
    input: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The pseudo-inverses of (…, m, n) matrices, (…, n, m), by singular values (``hermitian``: by eigenvalues).

    Those up to ``max(atol, rtol * largest)`` count as zero; ``rcond`` is the older name of ``rtol``.
    """
    if input.ndim < 2 or input.dtype.category < FLOATING or input.dtype.itemsize == 2:
        raise RuntimeError(
            f"linalg.pinv({title(input.dtype)}{{{list(input.shape)}}}): expected a tensor with 2 or more dimensions of "
            "float, double, cfloat or cdouble types"
        )
    if hermitian:
        check_square("linalg.pinv", shape_of(input))
    rtol = rtol if rcond is None else rcond
    _check_tolerance("torch.linalg.pinv", {"atol": atol, "rtol": rtol})
    return delivered("linalg.pinv", pseudo_inverse(input, atol, rtol, hermitian), out)
