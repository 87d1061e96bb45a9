"""The standard's extension of linear algebra: stacks of matrices in the last two dims, over ``candelabra.linalg``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from candelabra._annotations import Any, NamedTuple
from candelabra._layout import wrap_dim
from candelabra._tensor import Tensor
from candelabra.array_api._array import Array, arrayed, named, promoted
from candelabra.array_api._elementwise import titled
from candelabra.array_api._manipulation import broadcast_shapes, matrix_transpose
from candelabra.array_api._statistical import sum as _sum
from candelabra.dtypes import dtype

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class Eigenpairs(NamedTuple):
    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    Q: Array
    R: Array


class SignedLogarithm(NamedTuple):
    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    U: Array
    S: Array
    Vh: Array


def _of_matrices(name: str, doc: str) -> Callable[[Tensor], Array]:
    def function(x: Tensor, /) -> Array:
        return arrayed(named(f"linalg.{name}")(x), x)

    return titled(function, name, doc)  # type: ignore[no-any-return]


def _decompose(name: str, x: Tensor, result: Any, *options: Any) -> Any:
    return result(*(arrayed(part) for part in named(f"linalg.{name}")(x, *options)))


# -- products ---------------------------------------------------------------------------------------------------------
def matmul(x1: Tensor, x2: Tensor, /) -> Array:
    """Return the product of matrices, whose stacks broadcast, or the inner product of vectors. Dtypes are promoted."""
    return arrayed(named("matmul")(*promoted(x1, x2)))


def outer(x1: Tensor, x2: Tensor, /) -> Array:
    """Return the matrix of products of the elements of two vectors. Raises ``ValueError`` for arrays that are not
    vectors.
    """
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer() expects two vectors, not arrays of {x1.ndim} and {x2.ndim} dims")
    x1, x2 = promoted(x1, x2)
    return arrayed(x1.reshape((-1 if x1.numel() else 0, 1)) * x2)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Array:
    """Return the inner products of vectors along ``axis``, ``conj(x1) · x2``; the other axes broadcast.

    Raises ``ValueError`` if the vectors' lengths differ.
    """
    x1, x2 = promoted(x1, x2)
    if axis >= 0 and x1.ndim != x2.ndim:
        raise ValueError("vecdot() expects a negative axis for arrays of different ranks")
    first, second = (named("moveaxis")(x, wrap_dim(axis, x.ndim), -1) for x in (x1, x2))
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(f"vecdot() expects vectors of one length, got {first.shape[-1]} and {second.shape[-1]}")
    return _sum(first.conj() * second, axis=-1, dtype=x1.dtype)


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """Return the sum over pairs of axes of products: the last ``axes`` of ``x1`` and the first of ``x2``, or two
    sequences of axes.

    Raises ``ValueError`` if paired axes differ in size or number.
    """
    x1, x2 = promoted(x1, x2)
    if isinstance(axes, int):
        left, right = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    else:
        left, right = ([wrap_dim(a, x.ndim) for a in side] for side, x in zip(axes, (x1, x2)))
    sizes = [x1.shape[a] for a in left]
    if sizes != [x2.shape[a] for a in right]:
        raise ValueError(f"tensordot() expects axes of equal sizes, got {sizes} and {[x2.shape[a] for a in right]}")
    rows = [a for a in range(x1.ndim) if a not in left]
    columns = [a for a in range(x2.ndim) if a not in right]
    shape = [x1.shape[a] for a in rows] + [x2.shape[a] for a in columns]
    inner = math.prod(sizes)
    first = x1.permute(rows + left).reshape((math.prod(shape[: len(rows)]), inner))
    second = x2.permute(right + columns).reshape((inner, math.prod(shape[len(rows) :])))
    return arrayed(named("matmul")(first, second).reshape(shape))


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Array:
    """Return the cross products of vectors of 3 elements along ``axis``; the other axes broadcast.

    Raises ``ValueError`` if ``axis`` does not have size 3 in both.
    """
    x1, x2 = promoted(x1, x2)
    first, second = (named("moveaxis")(x, wrap_dim(axis, x.ndim), -1) for x in (x1, x2))
    if first.shape[-1] != 3 or second.shape[-1] != 3:
        raise ValueError(f"cross() expects vectors of 3 elements, not {first.shape[-1]} and {second.shape[-1]}")
    a, b = first.unbind(-1), second.unbind(-1)
    components = [a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3] for i in range(3)]
    return arrayed(named("stack")(components, axis))


def matrix_power(x: Tensor, n: int, /) -> Array:
    """Return the ``n``-th powers of square matrices; negative powers are those of the inverse."""
    return arrayed(named("linalg.matrix_power")(x, n), x)


# -- parts ------------------------------------------------------------------------------------------------------------
def diagonal(x: Tensor, /, *, offset: int = 0) -> Array:
    """Return a view of the diagonals of matrices, ``offset`` above the main one (below if negative)."""
    return arrayed(named("diagonal")(x, offset, -2, -1))


def trace(x: Tensor, /, *, offset: int = 0, dtype: dtype | None = None) -> Array:
    """Return the sums of the diagonals, in the dtype of :func:`candelabra.array_api.sum`."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


# -- one matrix each --------------------------------------------------------------------------------------------------
det = _of_matrices("det", "Return the determinants of square matrices.")
inv = _of_matrices("inv", "Return the inverses of square matrices.")
eigvals = _of_matrices("eigvals", "Return the eigenvalues of square matrices, complex.")
eigvalsh = _of_matrices("eigvalsh", "Return the eigenvalues of Hermitian matrices, real and in ascending order.")
svdvals = _of_matrices("svdvals", "Return the singular values of matrices, in descending order.")


def cholesky(x: Tensor, /, *, upper: bool = False) -> Array:
    """Return the triangular factors of positive-definite matrices: ``L`` with ``L @ L.mH == x``, or the upper one."""
    return arrayed(named("linalg.cholesky")(x, upper=upper))


def eig(x: Tensor, /) -> Eigenpairs:
    """Return the eigenvalues and, in columns, the eigenvectors of square matrices, which are complex."""
    return _decompose("eig", x, Eigenpairs)  # type: ignore[no-any-return]


def eigh(x: Tensor, /) -> Eigenpairs:
    """Return the eigenvalues (real, ascending) and, in columns, the eigenvectors of Hermitian matrices."""
    return _decompose("eigh", x, Eigenpairs)  # type: ignore[no-any-return]


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Return the factors ``Q`` (orthonormal) and ``R`` (upper triangular): "reduced", or "complete" with a square
    ``Q``.
    """
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr() expects mode 'reduced' or 'complete', not {mode!r}")
    return _decompose("qr", x, QRResult, mode)  # type: ignore[no-any-return]


def slogdet(x: Tensor, /) -> SignedLogarithm:
    """Return the signs of determinants and the logarithms of their absolute values."""
    return _decompose("slogdet", x, SignedLogarithm)  # type: ignore[no-any-return]


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular value decomposition ``U @ diag(S) @ Vh``; with square ``U`` and ``Vh`` if
    ``full_matrices``.
    """
    return _decompose("svd", x, SVDResult, full_matrices)  # type: ignore[no-any-return]


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Array:
    """Return the number of singular values above ``rtol`` times the largest (default: the larger size times the
    epsilon).
    """
    return arrayed(named("linalg.matrix_rank")(x, rtol=rtol))


def pinv(x: Tensor, /, *, rtol: Any = None) -> Array:
    """Return the Moore–Penrose inverses of matrices; singular values up to ``rtol`` times the largest are treated as
    0.
    """
    return arrayed(named("linalg.pinv")(x, rtol=rtol))


def solve(x1: Tensor, x2: Tensor, /) -> Array:
    """Return ``x`` with ``x1 @ x == x2``, where ``x2`` is one vector or a stack of matrices that broadcasts with
    ``x1``'s.
    """
    x1, x2 = promoted(x1, x2)
    if x2.ndim == 1:
        return arrayed(named("linalg.solve")(x1, x2.unsqueeze(-1)).squeeze(-1))
    stack = broadcast_shapes(tuple(x1.shape[:-2]), tuple(x2.shape[:-2]))
    left, right = (
        x.expand((*stack, *x.shape[-2:])) for x in (x1, x2)
    )  # of one rank, so that it is not interpreted as a stack of vectors
    return arrayed(named("linalg.solve")(left, right))


# -- norms ------------------------------------------------------------------------------------------------------------
def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Return the norms of matrices: "fro", "nuc", ±1, ±2 or ±inf."""
    return arrayed(named("linalg.matrix_norm")(x, "fro" if ord is None else ord, (-2, -1), keepdims))


def vector_norm(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """Return the ``ord``-norms of vectors along the axes, or of the flattened array."""
    if axis == ():  # no reduction; in PyTorch, () means all dims
        x, axis, keepdims = x.unsqueeze(0), 0, False
    return arrayed(named("linalg.vector_norm")(x, ord, axis, keepdims), x)


def __dir__() -> list[str]:
    return sorted(__all__)
