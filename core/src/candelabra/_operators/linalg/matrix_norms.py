"""Norms of matrices, norms of vectors or matrices, and condition numbers."""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import reduced_shape, wrap_dim
from candelabra._operators.elementwise.selection import where
from candelabra._operators.linalg.factorizations.svd import linalg_svdvals
from candelabra._operators.linalg.inverses import linalg_inv_ex
from candelabra._operators.linalg.norms import in_dtype, norm_of_order
from candelabra._operators.linalg.rules import check_matrix, check_square, floating
from candelabra._records.autocasting import Autocast
from candelabra._records.promotion import real_part
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra.typing import DType, Tensor

Ints = tuple[int, ...]
Order = Any
"""A number, or the name of a norm."""


# -- norms of matrices ------------------------------------------------------------------------------------------------
def _listed(dim: Sequence[int]) -> str:
    return ", ".join(str(d) for d in dim)


def _matrix_dims(shape: Ints, ord: Order, dim: Any) -> Ints:
    """Return the dims of the rows and the columns. Raise ``RuntimeError`` for dims and orders that are not those of a
    matrix norm.
    """
    check_matrix("linalg.matrix_norm", shape)
    if isinstance(dim, int) or len(dim) != 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim if isinstance(dim, int) else _listed(dim)}"
        )
    first, second = (wrap_dim(d, len(shape)) for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if not isinstance(ord, str) and abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord:g} not supported.")
    return first, second


@by
def _matrix_norm_shape(input: Tensor, ord: Order, dim: Any, keepdim: bool, dtype: Any) -> Ints:
    shape = shape_of(input)
    return reduced_shape(shape, _matrix_dims(shape, ord, dim), keepdim)


@operator(
    _matrix_norm_shape,
    promote=floating("linalg.matrix_norm", half=True),
    result=real_part,
    namespace="linalg",
    autocast=Autocast("float32"),
)
def linalg_matrix_norm(
    input: Tensor,
    ord: float | str = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return the norms of the matrices in the dims ``dim``, which are real.

    ``"fro"``: root of the sum of squares; ``"nuc"``: sum of the singular values; 2, -2: their largest, smallest; 1, -1:
    largest, smallest sum of absolute values of a column; inf, -inf: of a row. The norm is computed in ``dtype``.
    """
    first, second = _matrix_dims(shape_of(input), ord, dim)
    x = in_dtype("linalg.matrix_norm", input, dtype)
    if isinstance(ord, str):
        if ord == "fro":
            return norm_of_order(x, 2.0, (first, second), keepdim)
        order = 0.0
    else:
        order = ord
    if abs(order) in (0, 2):
        values = linalg_svdvals(x.movedim((first, second), (-2, -1)))
        result = _extreme(values, -1, order, False) if order else values.sum(-1)
        return result.unsqueeze(min(first, second)).unsqueeze(max(first, second)) if keepdim else result
    if abs(order) == math.inf:
        first, second = second, first
    sums = norm_of_order(x, 1.0, first, True)
    result = _extreme(sums, second, order, True)
    return result if keepdim else result.squeeze((first, second))


def _extreme(x: Tensor, dim: int, order: float, keepdim: bool) -> Tensor:
    """Return the largest element along ``dim`` for a positive order (0 if there are no elements), else the smallest."""
    if order < 0:
        return x.amin(dim, keepdim)
    return x.amax(dim, keepdim) if x.shape[dim] else x.sum(dim, keepdim)


# -- norms of vectors or matrices -------------------------------------------------------------------------------------
def _norm_dims(shape: Ints, ord: Order, dim: Any) -> tuple[Any, bool]:
    """Return the dims of a norm, and whether it is a matrix norm."""
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if ord is None:
        return dims, False
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got [{_listed(dims)}]")
    if dims is None and len(shape) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {len(shape)}D."
        )
    if not isinstance(ord, str) and len(dims or shape) != 2:
        return dims, False
    dims = tuple(range(len(shape))) if dims is None else dims
    return (dims if len(dims) > 1 else dims[0]), True


@by
def _norm_shape(input: Tensor, ord: Order, dim: Any, keepdim: bool, *_: Any) -> Ints:
    shape = shape_of(input)
    dims, matrices = _norm_dims(shape, ord, dim)
    if matrices:
        return reduced_shape(shape, _matrix_dims(shape, ord, dims), keepdim)
    return reduced_shape(shape, None if not dims else tuple([wrap_dim(d, len(shape)) for d in dims]), keepdim)


@operator(_norm_shape, promote=floating("linalg.vector_norm", half=True), result=real_part, namespace="linalg")
def linalg_norm(
    input: Tensor,
    ord: float | str | None = None,
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return a vector norm over one dim, a matrix norm over two; without ``ord`` the 2-norm over all that ``dim``
    names.

    See :func:`candelabra.linalg.vector_norm` and :func:`candelabra.linalg.matrix_norm` for the orders.
    """
    dims, matrices = _norm_dims(shape_of(input), ord, dim)
    if ord is None or not matrices:
        return norm_of_order(input, 2.0 if ord is None else ord, dims, keepdim, dtype)
    if isinstance(dims, int):
        _matrix_dims(shape_of(input), ord, dims)  # raises
    return linalg_matrix_norm(input, ord, dims, keepdim, dtype=dtype)


@by
def _older_norm_shape(input: Tensor, p: Order, dim: Any, keepdim: bool, *_: Any) -> Ints:
    shape = shape_of(input)
    if p == "nuc":
        return reduced_shape(shape, _matrix_dims(shape, p, (-2, -1) if dim is None else dim), keepdim)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    return _norm_shape(None, (input, None, dim, keepdim))


@operator(
    _older_norm_shape, promote=floating("linalg.vector_norm", half=True), result=real_part, autocast=Autocast("float32")
)
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: int | Sequence[int] | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
) -> Tensor:
    """Return the vector norm of order ``p`` over ``dim`` (all dims if None), or the nuclear norm of matrices,
    ``"nuc"``.

    ``"fro"`` and None are order 2. Unlike in ``linalg.norm``, a number is the order of a vector norm also for two dims.
    """
    if p == "nuc":
        dims: Any = (-2, -1) if dim is None else dim
        return linalg_matrix_norm(input, "nuc", dims, keepdim, dtype=dtype)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    return norm_of_order(input, 2.0 if p in ("fro", None) else p, dim, keepdim, dtype)


# -- condition numbers ------------------------------------------------------------------------------------------------
@by
def _cond_shape(input: Tensor, p: Order) -> Ints:
    shape = shape_of(input)
    if len(shape) < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or p in (2, -2):
        return shape[:-2]
    if p not in ("fro", "nuc", 1, -1, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    check_square(f"linalg.cond(ord={p})", shape)
    return shape[:-2]


@operator(
    _cond_shape,
    promote=floating("linalg.cond"),
    result=real_part,
    namespace="linalg",
    autocast=Autocast(host="float32"),
)
def linalg_cond(input: Tensor, p: float | str | None = None) -> Tensor:
    """Return the condition numbers ``norm(A, p) * norm(inv(A), p)``; for None, 2 and -2 the quotient of singular
    values.

    The result is inf for a singular matrix. ``p``: None, ``"fro"``, ``"nuc"``, ±1, ±2, ±inf.
    """
    _cond_shape(linalg_cond, (input, p))
    if 0 in input.shape[-2:]:
        return input.abs().sum((-2, -1))
    if p is None or p in (2, -2):
        values = linalg_svdvals(input)
        low, high = values.select(-1, -1), values.select(-1, 0)
        return low / high if p == -2 else high / low
    inverse, info = linalg_inv_ex(input)
    singular = info != 0
    inverse = where(singular.unsqueeze(-1).unsqueeze(-1), 0.0, inverse)  # infinities have no singular values
    result = linalg_matrix_norm(input, p) * linalg_matrix_norm(inverse, p)
    return where(singular, math.inf, result)
