"""Reductions of the elements that a mask selects. Slices without any give the reduction's identity, or NaN.

In all of them ``mask`` (True: counts) broadcasts to the input and has no more dims than it; ``dim`` is an int, a tuple,
or None for all dims; ``dtype`` is the result's. Source of names and semantics: ``torch.masked``.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.masked.combining import (
    INFINITY,
    canonical_dims,
    canonical_mask,
    combined,
    greatest,
    least,
    summed_dtype,
)
from candelabra._operators.primitives import reductions as plain
from candelabra._records.callables import public
from candelabra.dtypes import COMPLEX, FLOATING, float32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from candelabra._tensor import Tensor
    from candelabra.typing import DType

    Dims = int | Sequence[int] | None


@public(namespace="masked")
def sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The sum of the elements that the mask selects; 0 of none. Integers and bools sum to int64."""
    dims = canonical_dims(dim, input.ndim)
    return combined(input, mask, 0).sum(dims, keepdim, dtype=dtype or summed_dtype(input))


@public(namespace="masked")
def prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The product of the elements that the mask selects; 1 of none. Integers and bools give int64."""
    dims = canonical_dims(dim, input.ndim)
    return combined(input, mask, 1).prod(dims, keepdim, dtype=dtype or summed_dtype(input))


@public(namespace="masked")
def amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The largest of the elements that the mask selects; of none the dtype's least."""
    dims = canonical_dims(dim, input.ndim)
    return _as(plain.amax(combined(input, mask, least(input)), dims, keepdim), dtype)


@public(namespace="masked")
def amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The smallest of the elements that the mask selects; of none the dtype's greatest."""
    dims = canonical_dims(dim, input.ndim)
    return _as(plain.amin(combined(input, mask, greatest(input)), dims, keepdim), dtype)


@public(namespace="masked")
def argmax(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the largest of the elements that the mask selects, in the input's dtype unless another is named."""
    return _as(plain.argmax(combined(input, mask, least(input)), dim, keepdim), dtype or input.dtype)


@public(namespace="masked")
def argmin(
    input: Tensor,
    dim: int | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The index of the smallest of the elements that the mask selects, in the input's dtype unless another is named."""
    return _as(plain.argmin(combined(input, mask, greatest(input)), dim, keepdim), dtype or input.dtype)


def _as(x: Tensor, dtype: DType | None) -> Tensor:
    return x if dtype is None or dtype is x.dtype else x.to(dtype)


def _count(input: Tensor, dims: tuple[int, ...], keepdim: bool, mask: Tensor | None) -> Any:
    """How many elements are selected: a number without a mask."""
    if mask is None:
        return plain.count(tuple(input.shape), dims)
    return canonical_mask(input, mask).sum(dims, keepdim)


@public(namespace="masked")
def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The mean of the elements that the mask selects; NaN of none. ``ValueError`` for integers without ``dtype``."""
    source, wanted = ("Input", input.dtype) if dtype is None else ("Optional", dtype)
    if wanted.category < FLOATING:
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {wanted}"
        )
    dims = canonical_dims(dim, input.ndim)
    return sum(input, dims, keepdim=keepdim, dtype=wanted, mask=mask) / _count(input, dims, keepdim, mask)


@public(namespace="masked")
def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The middle one of the elements along ``dim`` that the mask selects, of two the lower; NaN of none.

    ``ValueError`` where there are none and the dtype is not a floating one.
    """
    floating = input.dtype.category == FLOATING
    work = input if floating else input.to(float32)
    found: Tensor = combined(work, mask, float("nan")).nanmedian(canonical_dims(dim, input.ndim)[0], keepdim).values
    if floating:
        return found
    if bool(found.isnan().any()):
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtype or input.dtype)


@public(namespace="masked")
def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """``log(sum(exp))`` of the elements that the mask selects; minus infinity of none."""
    wanted = dtype or input.dtype
    if input.dtype.category < FLOATING:
        identity = least(input)
    else:
        identity = -INFINITY
    return _as(combined(input, mask, identity).logsumexp(canonical_dims(dim, input.ndim), keepdim), wanted)


@public(namespace="masked")
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """``log(exp(input) + exp(other))`` with what either mask leaves out counted as minus infinity."""
    first, second = combined(input, input_mask, -INFINITY), combined(other, other_mask, -INFINITY)
    return _as(first.logaddexp(second), dtype or input.dtype)


@public(namespace="masked")
def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of the elements that the mask selects; 0 of none, infinity for ``ord=-inf``."""
    from candelabra.linalg import vector_norm

    work = combined(input, mask, INFINITY if ord == -INFINITY else 0)
    out: Tensor = vector_norm(work, ord, canonical_dims(dim, input.ndim), keepdim, dtype=dtype or input.dtype)
    return out


def _variance(
    input: Tensor,
    dim: Dims,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: DType | None,
    mask: Tensor | None,
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise ValueError("Only one of unbiased and correction may be given")
    taken_off = float(unbiased) if unbiased is not None else 1.0 if correction is None else float(correction)
    wanted = dtype or (input.dtype if input.dtype.category >= FLOATING else float32)
    compute = wanted if wanted.category >= FLOATING else float32
    dims = canonical_dims(dim, input.ndim)
    count = _count(input, dims, True, mask)
    distance = input - sum(input, dims, keepdim=True, dtype=wanted, mask=mask) / count
    total = sum(distance * distance.conj(), dims, keepdim=keepdim, dtype=compute, mask=mask)
    if mask is None:
        count = max(count - taken_off, 0.0)
    else:
        real = compute.to_real() if compute.category == COMPLEX else compute
        count = (count if keepdim else count.reshape(total.shape)).to(real)
        count = (count - taken_off).clamp(min=0.0) if taken_off else count
    return _as(total / count, wanted)


@public(namespace="masked")
def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance of the elements that the mask selects, over ``n - correction``; NaN of none."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


@public(namespace="masked")
def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation of the elements that the mask selects; see :func:`var`."""
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()
