"""Norms of vectors.

d‖x‖_p = Re Σ conj(sgn x) |x|^(p-1) ‖x‖_p^(1-p) dx. Where the norm is 0, it is not differentiable, and the gradient is
0, the subgradient of least length. For the orders inf and -inf, all elements that attain the extremum share the
gradient.
"""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any, NamedTuple
from candelabra._codegen.arguments import as_dims
from candelabra._layout import broadcast_shapes, reduced_shape
from candelabra._operators.creation.filled import new_full, zeroed
from candelabra._operators.elementwise.selection import where
from candelabra._operators.linalg.rules import floating
from candelabra._operators.reductions.sums import check_tangent_shape, expand_reduced, sum_of_products
from candelabra._records.autocasting import Autocast
from candelabra._records.overloads import overloads
from candelabra._records.promotion import real_part
from candelabra._records.record import operator
from candelabra._records.rules import by, shape_of
from candelabra.dtypes import COMPLEX, FLOATING, can_cast, dtype, float32

if TYPE_CHECKING:
    from candelabra.typing import Dim, Dims, DType, Number, Tensor

Ints = tuple[int, ...]
INFINITE = (math.inf, -math.inf)
FLOATING_ONLY = floating("linalg.vector_norm", half=True)


# -- vector_norm ------------------------------------------------------------------------------------------------------
@by
def _norm_shape(x: Tensor, ord: float, dim: Any, keepdim: bool, *_: Any) -> Ints:
    shape = shape_of(x)
    if (ord < 0 or ord == math.inf) and 0 in (shape if dim is None else [shape[d] for d in dim]):
        order = {math.inf: "inf", -math.inf: "-inf"}.get(ord) or f"{ord:g}"
        extent = "an empty tensor" if dim is None else f"the dimension {list(dim)} of an empty tensor"
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {order} norm on {extent} because the operation does not have an "
            "identity"
        )
    return reduced_shape(shape, dim, keepdim)


@operator(_norm_shape, promote=FLOATING_ONLY, result=real_part, public=False, autocast=Autocast("float32"))
def linalg_vector_norm(x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """``sum(abs(x)**ord)**(1/ord)`` over ``dim`` (all dims if None), which is real.

    Half types are computed in float32 and rounded once: neither the powers nor their sum overflow or lose digits.
    """
    if x.dtype.is_half:
        return linalg_vector_norm(x.to(float32), ord, dim, keepdim).to(x.dtype)
    size = x.abs()
    if ord == math.inf:
        return size.amax(dim, keepdim)
    if ord == -math.inf:
        return size.amin(dim, keepdim)
    if ord == 0:
        return (x != 0).to(size.dtype).sum(dim, keepdim)
    if ord == 1:
        return size.sum(dim, keepdim)
    if ord == 2:
        return (size * size).sum(dim, keepdim).sqrt()
    return (size**ord).sum(dim, keepdim) ** (1 / ord)


def _norm_back(g: Tensor, x: Tensor, out: Tensor, ord: float, dim: Any, keepdim: bool) -> Tensor:
    if ord == 0:
        return zeroed(x)
    shape = shape_of(x)
    g, norm = expand_reduced(g, dim, keepdim, shape), expand_reduced(out, dim, keepdim, shape)
    if ord == 1:
        return g * x.sgn()
    if ord == 2:
        return g * (x / norm).masked_fill(norm == 0, 0)
    size = x.abs()
    if ord in INFINITE:
        # The kernel of abs and that of the norm may round a complex number's absolute value differently.
        extreme = size.amax(dim, True) if ord > 0 else size.amin(dim, True)
        hits = (size == extreme) | size.isnan()
        return x.sgn() * (g / hits.sum(dim, True).to(g.dtype) * hits)
    if ord < 1:
        return x.sgn() * (size ** (ord - 1)).masked_fill(x == 0, 0) * g * norm ** (1 - ord)
    share = (g / norm ** (ord - 1)).masked_fill(norm == 0, 0)
    if ord < 2:
        return x.sgn() * size ** (ord - 1) * share
    return x * size ** (ord - 2) * share


linalg_vector_norm.vjp(x=_norm_back)


class NormAlong(NamedTuple):
    """The norm of order 2, and its derivative along a tangent."""

    norm: Tensor
    slope: Tensor


@by
def _shapes_along(t_x: Tensor, x: Tensor, dim: Any, keepdim: bool) -> tuple[Ints, Ints]:
    check_tangent_shape("linalg.vector_norm", t_x, x)
    shape = reduced_shape(shape_of(x), dim, keepdim)
    return shape, shape


@operator(_shapes_along, result=(real_part, real_part), accepts="floating", method=False, public=False)
def norm_along(t_x: Tensor, x: Tensor, dim: Dims = None, keepdim: bool = False) -> NormAlong:
    """Return the norm of order 2, and its derivative along ``t_x``: 0 where the norm is 0.

    One operator, so that a device reads each tensor once.
    """
    _shapes_along(norm_along, (t_x, x, dim, keepdim))
    if x.dtype.is_half:  # the products may overflow
        found = norm_along(t_x.to(float32), x.to(float32), dim, keepdim)
        return NormAlong(found.norm.to(x.dtype), found.slope.to(x.dtype))
    norm = linalg_vector_norm(x, 2, dim, keepdim)
    return NormAlong(norm, (sum_of_products(x.conj(), t_x, dim, keepdim).real / norm).masked_fill(norm == 0, 0))


def _norm_and_slope(t_x: Tensor, x: Tensor, ord: float, dim: Any, keepdim: bool) -> tuple[Tensor, Tensor]:
    if ord == 2:
        norm, slope = norm_along.canonical(t_x, x, dim, keepdim)
        return norm, slope
    norm = linalg_vector_norm(x, ord, dim, keepdim)
    gradient = _norm_back(new_full(norm, tuple(norm.shape), 1), x, norm, ord, dim, keepdim)
    slope = sum_of_products(gradient.conj(), t_x, dim, keepdim).real
    return norm, slope if slope.dtype is norm.dtype else slope.to(norm.dtype)


linalg_vector_norm.jvp(_norm_and_slope, joint=True)


# -- with an order, dims and a dtype ----------------------------------------------------------------------------------
def in_dtype(name: str, x: Tensor, target: dtype | None) -> Tensor:
    """Return ``x`` in the dtype in which a norm is computed: a floating dtype without narrowing, complex for complex
    ``x``.
    """
    if target is None:
        return x
    if target.category < FLOATING:
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {target.title}")
    if (target.category == COMPLEX) is not x.is_complex():
        kind = "complex" if x.is_complex() else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {target.title}")
    if not can_cast(x.dtype, target) or target.itemsize < x.dtype.itemsize:
        raise RuntimeError(
            f"{name}: the dtype of the input ({x.dtype.title}) should be convertible without narrowing to the "
            f"specified dtype ({target.title})"
        )
    return x if target is x.dtype else x.to(target)


def norm_of_order(x: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: dtype | None = None) -> Tensor:
    """Return :func:`linalg_vector_norm` in a dtype. The checks of its rule run first, because not all kernels have
    them.
    """
    _norm_shape(None, (x, ord, as_dims(dim, x), keepdim))
    return linalg_vector_norm(in_dtype("linalg.vector_norm", x, dtype), float(ord), dim, keepdim)


@operator(_norm_shape, promote=FLOATING_ONLY, result=real_part, public=False, autocast=Autocast("float32"))
def linalg_vector_norm_of_order(
    x: Tensor, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None
) -> Tensor:
    """``sum(abs(x)**ord)**(1/ord)`` over ``dim`` (all dims if None), which is real.

    Order 0 counts the nonzero elements, inf and -inf select the largest and smallest absolute value. It is computed in
    ``dtype``. Raises ``RuntimeError`` for a norm of no elements that is undefined.
    """
    return norm_of_order(x, ord, dim, keepdim, dtype)


vector_norm = overloads("linalg_vector_norm", linalg_vector_norm_of_order, namespace="linalg")


# -- norms of differences and slices -----------------------------------------------------------------------------------
def _floating_difference(d: dtype) -> dtype:
    if d.category < FLOATING:
        raise RuntimeError(f"norm(): input dtype should be either floating point or complex. Got {d.title} instead.")
    return d


@by
def _distance_shape(input: Tensor, other: Tensor, p: float) -> Ints:
    broadcast_shapes(shape_of(input), shape_of(other))
    return ()


@operator(_distance_shape, promote=_floating_difference, result=real_part, out=False, autocast=Autocast("float32"))
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Return the norm of order ``p`` of ``input - other``, a 0-d tensor; the tensors broadcast."""
    return norm_of_order(input - other, p, None, False)


@by
def _renorm_shape(input: Tensor, p: float, dim: int, maxnorm: float) -> Ints:
    shape = shape_of(input)
    if len(shape) < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {len(shape)} dimensions")
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    return shape


@operator(_renorm_shape, promote=floating("renorm", half=True), inplace=True, autocast=Autocast("float32"))
def renorm(input: Tensor, p: Number, dim: Dim, maxnorm: float) -> Tensor:
    """Scale each slice along ``dim`` whose norm of order ``p`` exceeds ``maxnorm`` down to that norm."""
    _renorm_shape(renorm, (input, p, dim, maxnorm))
    size = norm_of_order(input, p, [d for d in range(input.ndim) if d != dim], True)
    return input * where(size > maxnorm, maxnorm / (size + 1e-7), 1.0)
