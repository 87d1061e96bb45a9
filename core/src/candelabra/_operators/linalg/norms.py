"""Norms of vectors and matrices.

d‖x‖_p = Re Σ conj(sgn x) |x|^(p-1) ‖x‖_p^(1-p) dx. Where the norm is 0 it has a corner, and the gradient is 0, the
subgradient of least length; extremes share it among all elements that attain them.
"""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.arguments import as_dims, as_dtype, wrap_dim
from candelabra._dispatch.promote import title
from candelabra._operators.linalg.arguments import takes_tensors
from candelabra._operators.linalg.delivery import delivered
from candelabra._operators.linalg.requirements import check_floating, check_matrix
from candelabra._operators.linalg.singular import linalg_svdvals
from candelabra._operators.primitives.creation import zeroed
from candelabra._operators.reductions.sums import expand_reduced
from candelabra._records.callables import public
from candelabra._records.promotion import real_part
from candelabra._records.record import operator
from candelabra._records.rules import reduction, shape_of
from candelabra.dtypes import COMPLEX, FLOATING, can_cast, dtype

if TYPE_CHECKING:
    from candelabra.typing import Dims, DType, Tensor

INFINITE = (math.inf, -math.inf)


@operator(reduction, result=real_part, accepts="floating", public=False, method=False)
def linalg_vector_norm(input: Tensor, order: float, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """``sum(abs(input)**order)**(1/order)`` over ``dim``; of order 0 the count of nonzeros, of ±inf the extremes."""
    size = input.abs()
    if order == math.inf:
        return size.amax(dim, keepdim)
    if order == -math.inf:
        return size.amin(dim, keepdim)
    if order == 0:
        return (input != 0).to(size.dtype).sum(dim, keepdim)
    if order == 1:
        return size.sum(dim, keepdim)
    if order == 2:
        return (size * size).sum(dim, keepdim).sqrt()
    return (size**order).sum(dim, keepdim) ** (1 / order)


def _norm_back(g: Tensor, input: Tensor, out: Tensor, order: float, dim: Any, keepdim: bool) -> Tensor:
    if order == 0:
        return zeroed(input)
    shape = shape_of(input)
    g, norm = expand_reduced(g, dim, keepdim, shape), expand_reduced(out, dim, keepdim, shape)
    if order == 1:
        return g * input.sgn()
    if order == 2:
        return g * (input / norm).masked_fill(norm == 0, 0)
    size = input.abs()
    if order in INFINITE:
        hits = (size == norm) | size.isnan()
        return input.sgn() * (g / hits.sum(dim, True).to(g.dtype) * hits)
    if order < 1:
        return input.sgn() * (size ** (order - 1)).masked_fill(input == 0, 0) * g * norm ** (1 - order)
    share = (g / norm ** (order - 1)).masked_fill(norm == 0, 0)
    if order < 2:
        return input.sgn() * size ** (order - 1) * share
    return input * size ** (order - 2) * share


linalg_vector_norm.vjp(input=_norm_back)


def in_dtype(name: str, x: Tensor, wanted: DType | None) -> Tensor:
    """``x`` in the dtype that a norm is to be computed in: a floating one that holds it, complex for complex ``x``."""
    check_floating(name, x.dtype)
    if wanted is None:
        return x
    d: dtype = as_dtype(wanted)
    if d.category < FLOATING:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {title(d)}")
    if (d.category == COMPLEX) is not x.is_complex():
        kind = "complex" if x.is_complex() else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {title(d)}")
    if not can_cast(x.dtype, d) or d.itemsize < x.dtype.itemsize:
        raise RuntimeError(
            f"{name}: the dtype of the input ({title(x.dtype)}) should be convertible without narrowing to the "
            f"specified dtype ({title(d)})"
        )
    return x if d is x.dtype else x.to(d)


def _ordered(name: str, order: Any) -> float:
    if isinstance(order, str) or not hasattr(order, "__float__"):
        raise TypeError(f"{name}(): argument 'ord' (position 2) must be Number, not {type(order).__name__}")
    return float(order)


def norm_of_vectors(x: Tensor, order: float, dim: Any, keepdim: bool) -> Tensor:
    """:func:`linalg_vector_norm` after the check that extremes need elements."""
    dims = as_dims(dim, x)
    if order < 0 or order == math.inf:
        sizes = x.shape if dims is None else [x.shape[d] for d in dims]
        if 0 in sizes:
            shown = {math.inf: "inf", -math.inf: "-inf"}.get(order) or f"{order:g}"
            where_ = "an empty tensor" if dims is None else f"the dimension {list(dims)} of an empty tensor"
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {shown} norm on {where_} because the operation does not have "
                "an identity"
            )
    return linalg_vector_norm(x, order, dims, keepdim)


@public(namespace="linalg")
@takes_tensors("linalg_vector_norm")
def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """``sum(abs(x)**ord)**(1/ord)`` over ``dim`` (all dims when None), real.

    Of order 0 the count of nonzeros, of inf and -inf the largest and smallest absolute value; computed in ``dtype``.
    """
    order = _ordered("linalg_vector_norm", ord)
    found = norm_of_vectors(in_dtype("linalg.vector_norm", x, dtype), order, dim, keepdim)
    return delivered("linalg.vector_norm", found, out)


def norm_of_matrices(A: Tensor, order: Any, dim: Any, keepdim: bool) -> Tensor:
    """Norms of the matrices in two dims: ``"fro"``, ``"nuc"``, ±1, ±2, ±inf."""
    shape = shape_of(A)
    check_matrix("linalg.matrix_norm", shape)
    if isinstance(dim, int) or len(dim) != 2:
        raise RuntimeError(
            f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim if isinstance(dim, int) else _listed(dim)}"
        )
    first, second = (wrap_dim(d, len(shape)) for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dim[0]}, {dim[1]})")
    if isinstance(order, str) and order not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {order} not supported.")
    if not isinstance(order, str) and abs(order) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {order:g} not supported.")
    if order == "fro":
        return norm_of_vectors(A, 2.0, (first, second), keepdim)
    if order == "nuc" or abs(order) == 2:
        values = linalg_svdvals(A.movedim((first, second), (-2, -1)))
        found = values.sum(-1) if order == "nuc" else _extreme(values, -1, order, False)
        return found.unsqueeze(min(first, second)).unsqueeze(max(first, second)) if keepdim else found
    if abs(order) == math.inf:
        first, second = second, first
    sums = norm_of_vectors(A, 1.0, first, True)
    found = _extreme(sums, second, order, True)
    return found if keepdim else found.squeeze((first, second))


def _extreme(x: Tensor, dim: int, order: float, keepdim: bool) -> Tensor:
    """The largest along ``dim`` for a positive order (0 of none: norms are not below it), else the smallest."""
    if order < 0:
        return x.amin(dim, keepdim)
    return x.amax(dim, keepdim) if x.shape[dim] else x.sum(dim, keepdim)


def _listed(dim: Any) -> str:
    return ", ".join(str(d) for d in dim)


@public(namespace="linalg")
@takes_tensors("linalg_matrix_norm")
def matrix_norm(
    input: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Norms of the matrices in the dims ``dim``, real.

    ``"fro"``: root of the sum of squares; ``"nuc"``: sum of the singular values; 2, -2: their largest, smallest; 1, -1:
    largest, smallest sum of absolute values of a column; inf, -inf: of a row.
    """
    found = norm_of_matrices(in_dtype("linalg.matrix_norm", input, dtype), ord, dim, keepdim)
    return delivered("linalg.matrix_norm", found, out)


@public(namespace="linalg")
@takes_tensors("linalg_norm")
def norm(
    input: Tensor,
    ord: Any = None,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A vector norm over one dim, a matrix norm over two; without ``ord`` the 2-norm over all that ``dim`` names.

    See :func:`vector_norm` and :func:`matrix_norm` for the orders.
    """
    if ord is None:
        found = norm_of_vectors(in_dtype("linalg.vector_norm", input, dtype), 2.0, dim, keepdim)
        return delivered("linalg.norm", found, out)
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got [{_listed(dims)}]")
    if dims is None and input.ndim not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {input.ndim}D."
        )
    if isinstance(ord, str) or len(dims or input.shape) == 2:
        if dims is None:
            dims = tuple(range(input.ndim))
        found = norm_of_matrices(
            in_dtype("linalg.matrix_norm", input, dtype), ord, dims if len(dims) > 1 else dims[0], keepdim
        )
    else:
        found = norm_of_vectors(
            in_dtype("linalg.vector_norm", input, dtype), _ordered("linalg_norm", ord), dims, keepdim
        )
    return delivered("linalg.norm", found, out)
