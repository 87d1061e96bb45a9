"""Linear algebra's older names: functions of ``candelabra`` and methods of tensors, with their older arguments."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._dispatch.promote import title
from candelabra._operators.elementwise.selection import where
from candelabra._operators.linalg import (
    determinants,
    inversion,
    norms,
    orthogonal,
    pivoted,
    positive,
    powers,
    ranks,
    singular,
)
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.linalg.determinants import SignAndLogarithm
from candelabra._operators.linalg.orthogonal import QR
from candelabra._operators.linalg.requirements import check_info, factored, not_positive
from candelabra._records.callables import public
from candelabra._records.rules import shape_of

if TYPE_CHECKING:
    from candelabra.typing import DType, Tensor


@public
@takes_tensors("det")
def det(input: Tensor) -> Tensor:
    """The determinants of (…, n, n) matrices; see ``linalg.det``."""
    return determinants.linalg_det(input)


@public
@takes_tensors("slogdet")
def slogdet(input: Tensor, *, out: Any = None) -> SignAndLogarithm:
    """Sign and logarithm of the determinants of (…, n, n) matrices; see ``linalg.slogdet``."""
    return determinants.slogdet(input, out=out)


@public
@takes_tensors("inverse")
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverses of (…, n, n) matrices; see ``linalg.inv``."""
    return inversion.inv(input, out=out)


@public
@takes_tensors("pinverse")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudo-inverses of (…, m, n) matrices; singular values up to ``rcond`` times the largest count as zero."""
    return ranks.pinv(input, rcond)


@public
@takes_tensors("matrix_power")
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Square matrices to an integer power; see ``linalg.matrix_power``."""
    return powers.matrix_power(input, n, out=out)


@public
@takes_tensors("cholesky")
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The Cholesky factors of Hermitian positive-definite matrices; see ``linalg.cholesky``.

    ``LinAlgError`` where a matrix is not positive-definite.
    """
    found = positive.linalg_cholesky_ex(input, upper)
    check_info("cholesky", found.info, not_positive)
    return delivered("cholesky", found.L, out)


@public
@takes_tensors("qr")
def qr(input: Tensor, some: bool = True, *, out: Any = None) -> QR:
    """``(Q, R)`` with ``input = Q R``, Q square unless ``some``; see ``linalg.qr``."""
    return orthogonal.qr(input, "reduced" if some else "complete", out=out)


class SVDOfColumns(NamedTuple):
    """Left and right singular vectors as columns, and the singular values."""

    U: Tensor
    S: Tensor
    V: Tensor


@public
@takes_tensors("svd")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> SVDOfColumns:
    """``(U, S, V)`` with ``input = U diag(S) Vᴴ``; U and V square unless ``some``, zeros unless ``compute_uv``.

    The older form of ``linalg.svd``, which returns Vᴴ.
    """
    if input.ndim < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {input.ndim} dimensions instead"
        )
    if not compute_uv:
        values = singular.linalg_svdvals(input)
        lead, (m, n) = shape_of(input)[:-2], shape_of(input)[-2:]
        found = SVDOfColumns(input.new_zeros((*lead, m, m)), values, input.new_zeros((*lead, n, n)))
    else:
        U, S, Vh = singular.linalg_svd(input, not some)
        found = SVDOfColumns(U, S, Vh.mH)
    return delivered("svd", found, out)


@public
@takes_tensors("lu_solve")
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """X with A X = ``b`` for A as ``linalg.lu_factor`` left it; see ``linalg.lu_solve``."""
    return pivoted.lu_solve(LU_data, LU_pivots, b, out=out)


@public
@takes_tensors("lu")
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> tuple[Tensor, ...]:
    """``(LU, pivots)``, with ``get_infos`` ``(LU, pivots, infos)``: see ``linalg.lu_factor_ex``.

    ``RuntimeError`` where a pivot is zero and no infos are asked for.
    """
    found = pivoted.lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
    value = found if get_infos else (found.LU, found.pivots)
    if out is None:
        return value
    if len(out) != len(value):
        raise TypeError(f"expected tuple of {len(value)} elements but got {len(out)}")
    for target, part in zip(out, value, strict=True):
        delivered("lu", part, target)
    return tuple(out)


# -- norms and distances ----------------------------------------------------------------------------------------------
@public
@takes_tensors("norm")
def norm(
    input: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """The vector norm of order ``p`` over ``dim`` (all dims when None), or the nuclear norm of matrices, ``"nuc"``.

    ``"fro"`` and None are 2. Unlike ``linalg.norm`` numbers are orders of vector norms over two dims, too.
    """
    dims = (dim,) if isinstance(dim, int) else dim
    if p == "nuc":
        found = norms.matrix_norm(input, "nuc", (-2, -1) if dims is None else dims, keepdim, dtype=dtype)
    elif isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    else:
        found = norms.vector_norm(input, 2.0 if p in ("fro", None) else p, dims, keepdim, dtype=dtype)
    return delivered("norm", found, out)


@public
@takes_tensors("dist")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of order ``p`` of ``input - other``, a 0-d tensor; the tensors broadcast."""
    difference = input - other
    if not difference.is_floating_point() and not difference.is_complex():
        raise RuntimeError("norm(): input dtype should be either floating point or complex. Got "
                           f"{title(difference.dtype)} instead.")  # fmt: skip
    return norms.vector_norm(difference, p)


def _scaled(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    factored("renorm", low=True)(input.dtype)
    place = dim % input.ndim if -input.ndim <= dim < input.ndim else dim
    others = tuple(i for i in range(input.ndim) if i != place)
    size = norms.vector_norm(input, p, others, True)

    return where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)


@public
@takes_tensors("renorm")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Tensor:
    """Each slice along ``dim`` whose norm of order ``p`` exceeds ``maxnorm`` scaled down to it."""
    return delivered("renorm", input * _scaled(input, p, dim, maxnorm), out)


@public(is_function=False)
@takes_tensors("renorm_")
def renorm_(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """In-place form of :func:`renorm`."""
    before = input.clone() if input.requires_grad else input  # the norm's derivative asks for what is written over
    return input.mul_(_scaled(before, p, dim, maxnorm))
