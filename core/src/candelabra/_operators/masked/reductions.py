"""Reductions of the elements that a mask selects. Slices without any give the reduction's identity, or NaN.

In all of them ``mask`` (True: selected) broadcasts to the input and has no more dims than it; ``dim`` is an int, a
tuple, or None for all dims; ``dtype`` is the result's. Source of names and semantics: ``torch.masked``.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import broadcast_shapes
from candelabra._operators.masked.masks import INFINITY, expanded_mask, fill_masked, highest, in_dtype, lowest
from candelabra._operators.reductions.sums import reduced_count
from candelabra._records.promotion import accumulated
from candelabra._records.record import operator
from candelabra._records.rules import by, reduction, shape_of
from candelabra.dtypes import FLOATING, float32

if TYPE_CHECKING:
    from candelabra.typing import Dim, Dims, DType, Mask, Tensor


# -- sums, products and extrema ---------------------------------------------------------------------------------------
@operator(reduction, result=accumulated, namespace="masked", out=False)
def masked_sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """The sum of the selected elements; 0 of none. Integers and bools sum to int64."""
    return fill_masked(input, mask, 0).sum(dim, keepdim, dtype=dtype or accumulated(input.dtype))


@operator(reduction, result=accumulated, namespace="masked", out=False)
def masked_prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """The product of the selected elements; 1 of none. Integers and bools give int64."""
    return fill_masked(input, mask, 1).prod(dim, keepdim, dtype=dtype or accumulated(input.dtype))


@operator(reduction, namespace="masked", out=False)
def masked_amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """The largest of the selected elements; of none the dtype's lowest number."""
    return in_dtype(fill_masked(input, mask, lowest(input)).amax(dim, keepdim), dtype)


@operator(reduction, namespace="masked", out=False)
def masked_amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """The smallest of the selected elements; of none the dtype's highest number."""
    return in_dtype(fill_masked(input, mask, highest(input)).amin(dim, keepdim), dtype)


@operator(reduction, namespace="masked", out=False)
def masked_argmax(
    input: Tensor,
    dim: Dim | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Mask | None = None,
) -> Tensor:
    """The index of the largest of the selected elements, by default in the input's dtype."""
    return fill_masked(input, mask, lowest(input)).argmax(dim, keepdim).to(dtype or input.dtype)


@operator(reduction, namespace="masked", out=False)
def masked_argmin(
    input: Tensor,
    dim: Dim | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Mask | None = None,
) -> Tensor:
    """The index of the smallest of the selected elements, by default in the input's dtype."""
    return fill_masked(input, mask, highest(input)).argmin(dim, keepdim).to(dtype or input.dtype)


# -- means, medians and variances -------------------------------------------------------------------------------------
def _count(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None) -> Any:
    """How many elements are selected: a number without a mask."""
    if mask is None:
        return reduced_count(tuple(input.shape), dim)
    return expanded_mask(input, mask).sum(dim, keepdim)


@operator(reduction, namespace="masked", out=False)
def masked_mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """The mean of the selected elements; NaN of none. Raises ``ValueError`` for integers without ``dtype``."""
    source, wanted = ("Input", input.dtype) if dtype is None else ("Optional", dtype)
    if wanted.category < FLOATING:
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {wanted}"
        )
    return masked_sum(input, dim, keepdim=keepdim, dtype=wanted, mask=mask) / _count(input, dim, keepdim, mask)


@operator(reduction, namespace="masked", out=False, data_dependent=True)
def masked_median(
    input: Tensor, dim: Dim = -1, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """The middle one of the selected elements along ``dim``, the lower of two; NaN of none.

    Raises ``ValueError`` where none is selected and the dtype is not a floating one.
    """
    floating = input.dtype.category == FLOATING
    x = fill_masked(input if floating else input.to(float32), mask, float("nan"))
    found = x.nanmedian(dim, keepdim).values
    if floating:
        return found
    if bool(found.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtype or input.dtype)


def _variance_dtype(input: Tensor, dtype: DType | None) -> DType:
    return dtype or (input.dtype if input.dtype.category >= FLOATING else float32)


@operator(reduction, namespace="masked", out=False)
def masked_var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Mask | None = None,
) -> Tensor:
    """The variance of the selected elements: squared distances from their mean, over ``n - correction``; NaN of none.

    ``correction`` is 1 by default; ``unbiased`` is its older name: True is 1, False 0.
    """
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    correction = 1.0 if correction is None else correction
    if unbiased is not None:
        correction = float(unbiased)
    wanted = _variance_dtype(input, dtype)
    compute = wanted if wanted.category >= FLOATING else float32
    mean = masked_sum(input, dim, keepdim=True, dtype=wanted, mask=mask) / _count(input, dim, True, mask)
    distance = input - mean
    total = masked_sum(distance * distance.conj(), dim, keepdim=keepdim, dtype=compute, mask=mask)
    count = _count(input, dim, keepdim, mask)
    if mask is None:
        return (total / max(count - correction, 0.0)).to(wanted)
    return (total / (count.to(compute.to_real()) - correction).clamp(min=0.0)).to(wanted)


@operator(reduction, namespace="masked", out=False)
def masked_std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Mask | None = None,
) -> Tensor:
    """The standard deviation of the selected elements; see :func:`var`."""
    wanted = _variance_dtype(input, dtype)
    return masked_var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=wanted, mask=mask
    ).sqrt()  # fmt: skip


# -- logarithms of sums, and norms ------------------------------------------------------------------------------------
@operator(reduction, namespace="masked", out=False)
def masked_logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """``log(sum(exp(x)))`` over the selected elements; minus infinity of none."""
    identity = lowest(input) if input.dtype.category < FLOATING else -INFINITY
    return fill_masked(input, mask, identity).logsumexp(dim, keepdim).to(dtype or input.dtype)


@operator(
    by(lambda input, other, *_: broadcast_shapes(shape_of(input), shape_of(other))), namespace="masked", out=False
)
def masked_logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Mask | None = None,
    other_mask: Mask | None = None,
) -> Tensor:
    """``log(exp(input) + exp(other))`` with elements that either mask leaves out counted as minus infinity."""
    x, y = fill_masked(input, input_mask, -INFINITY), fill_masked(other, other_mask, -INFINITY)
    return x.logaddexp(y).to(dtype or input.dtype)


@operator(reduction, namespace="masked", out=False)
def masked_norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Mask | None = None,
) -> Tensor:
    """The vector norm of the selected elements; 0 of none, infinity for ``ord=-inf``."""
    from candelabra.linalg import vector_norm

    x = fill_masked(input, mask, INFINITY if ord == -INFINITY else 0)
    out: Tensor = vector_norm(x, ord, dim, keepdim, dtype=dtype or input.dtype)
    return out
