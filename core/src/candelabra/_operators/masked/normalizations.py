"""Normalisations and cumulative operators along a dim over the elements that a mask selects. They keep the shape.

The operation's identity replaces masked-out elements. Source of names and semantics: ``torch.masked``.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.masked.masks import fill_masked, highest, in_dtype, lowest
from candelabra._records.record import operator
from candelabra._records.rules import like_input

if TYPE_CHECKING:
    from candelabra.typing import Dim, DType, Mask, Tensor


@operator(like_input, namespace="masked", out=False)
def masked_softmax(input: Tensor, dim: Dim, *, dtype: DType | None = None, mask: Mask | None = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along ``dim`` over selected elements, 0 elsewhere; NaN if no element is selected."""
    return in_dtype(fill_masked(input, mask, lowest(input)), dtype).softmax(dim)


@operator(like_input, namespace="masked", out=False)
def masked_log_softmax(input: Tensor, dim: Dim, *, dtype: DType | None = None, mask: Mask | None = None) -> Tensor:
    """Return the logarithm of :func:`softmax`, minus infinity for elements that are not selected."""
    return in_dtype(fill_masked(input, mask, lowest(input)), dtype).log_softmax(dim)


@operator(like_input, namespace="masked", out=False)
def masked_softmin(input: Tensor, dim: Dim, *, dtype: DType | None = None, mask: Mask | None = None) -> Tensor:
    """Return :func:`softmax` of ``-input``."""
    return (-in_dtype(fill_masked(input, mask, highest(input)), dtype)).softmax(dim)


@operator(like_input, namespace="masked", out=False)
def masked_normalize(
    input: Tensor, ord: float, dim: Dim, *, eps: float = 1e-12, dtype: DType | None = None, mask: Mask | None = None
) -> Tensor:
    """Divide selected elements by their vector norm along ``dim``, or by ``eps`` if that is larger; 0 elsewhere."""
    from candelabra.linalg import vector_norm

    x = fill_masked(input, mask, 0)
    length = vector_norm(x, ord, dim, True, dtype=dtype or input.dtype)
    out: Tensor = x / length.clamp(min=eps)
    return out


@operator(like_input, namespace="masked", out=False)
def masked_cumsum(input: Tensor, dim: Dim, *, dtype: DType | None = None, mask: Mask | None = None) -> Tensor:
    """Return cumulative sums along ``dim`` with masked-out elements replaced by 0, by default in the input's dtype."""
    return fill_masked(input, mask, 0).cumsum(dim, dtype=dtype or input.dtype)


@operator(like_input, namespace="masked", out=False)
def masked_cumprod(input: Tensor, dim: Dim, *, dtype: DType | None = None, mask: Mask | None = None) -> Tensor:
    """Return cumulative products along ``dim`` with masked-out elements replaced by 1, by default in the input's
    dtype.
    """
    return fill_masked(input, mask, 1).cumprod(dim, dtype=dtype or input.dtype)
