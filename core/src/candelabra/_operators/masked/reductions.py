"""Reductions of the elements that a mask selects. Slices without selected elements give the reduction's identity, or
NaN.

In all functions, ``mask`` (True: selected) broadcasts to the input and has at most as many dims; ``dim`` is an int, a
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
    """Return the sum of the selected elements, or 0 if there are none. Integers and bools sum to int64."""
    return fill_masked(input, mask, 0).sum(dim, keepdim, dtype=dtype or accumulated(input.dtype))


@operator(reduction, result=accumulated, namespace="masked", out=False)
def masked_prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """Return the product of the selected elements, or 1 if there are none. Integers and bools give int64."""
    return fill_masked(input, mask, 1).prod(dim, keepdim, dtype=dtype or accumulated(input.dtype))


@operator(reduction, namespace="masked", out=False)
def masked_amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """Return the largest of the selected elements, or the dtype's smallest number if there are none."""
    return in_dtype(fill_masked(input, mask, lowest(input)).amax(dim, keepdim), dtype)


@operator(reduction, namespace="masked", out=False)
def masked_amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """Return the smallest of the selected elements, or the dtype's largest number if there are none."""
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
    """Return the index of the largest of the selected elements, by default in the input's dtype."""
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
    """Return the index of the smallest of the selected elements, by default in the input's dtype."""
    return fill_masked(input, mask, highest(input)).argmin(dim, keepdim).to(dtype or input.dtype)


# -- means, medians and variances -------------------------------------------------------------------------------------
def _count(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None) -> Any:
    """Return the number of selected elements, which without a mask is a Python number."""
    if mask is None:
        return reduced_count(tuple(input.shape), dim)
    return expanded_mask(input, mask).sum(dim, keepdim)


@operator(reduction, namespace="masked", out=False)
def masked_mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """Return the mean of the selected elements, or NaN if there are none. Raises ``ValueError`` for integers without
    ``dtype``.
    """
    source, target = ("Input", input.dtype) if dtype is None else ("Optional", dtype)
    if target.category < FLOATING:
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {target}"
        )
    return masked_sum(input, dim, keepdim=keepdim, dtype=target, mask=mask) / _count(input, dim, keepdim, mask)


@operator(reduction, namespace="masked", out=False, data_dependent=True)
def masked_median(
    input: Tensor, dim: Dim = -1, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """Return the median of the selected elements along ``dim``, the lower one of two, or NaN if there are none.

    Raises ``ValueError`` if no element is selected and the dtype is not floating.
    """
    floating = input.dtype.category == FLOATING
    x = fill_masked(input if floating else input.to(float32), mask, float("nan"))
    result = x.nanmedian(dim, keepdim).values
    if floating:
        return result
    if bool(result.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return result.to(dtype or input.dtype)


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
    """Return the variance of the selected elements, or NaN if there are none.

    It is the sum of the squared distances from their mean, divided by ``n - correction``. ``correction`` is 1 by
    default; ``unbiased`` is its older name: True is 1, False is 0.
    """
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    correction = 1.0 if correction is None else correction
    if unbiased is not None:
        correction = float(unbiased)
    target = _variance_dtype(input, dtype)
    compute = target if target.category >= FLOATING else float32
    mean = masked_sum(input, dim, keepdim=True, dtype=target, mask=mask) / _count(input, dim, True, mask)
    distance = input - mean
    total = masked_sum(distance * distance.conj(), dim, keepdim=keepdim, dtype=compute, mask=mask)
    count = _count(input, dim, keepdim, mask)
    if mask is None:
        return (total / max(count - correction, 0.0)).to(target)
    return (total / (count.to(compute.to_real()) - correction).clamp(min=0.0)).to(target)


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
    """Return the standard deviation of the selected elements; see :func:`var`."""
    target = _variance_dtype(input, dtype)
    return masked_var(
        input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=target, mask=mask
    ).sqrt()  # fmt: skip


# -- logarithms of sums, and norms ------------------------------------------------------------------------------------
@operator(reduction, namespace="masked", out=False)
def masked_logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """``log(sum(exp(x)))`` over the selected elements, or minus infinity if there are none."""
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
    """``log(exp(input) + exp(other))`` with masked-out elements replaced by minus infinity."""
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
    """Return the vector norm of the selected elements; if there are none, 0, or infinity for ``ord=-inf``."""
    from candelabra.linalg import vector_norm

    x = fill_masked(input, mask, INFINITY if ord == -INFINITY else 0)
    out: Tensor = vector_norm(x, ord, dim, keepdim, dtype=dtype or input.dtype)
    return out
