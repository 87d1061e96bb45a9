"""Normalisations and scans along a dim that leave out what a mask says: the shape stays.

What is masked out counts as the operation's identity. Source of names and semantics: ``torch.masked``.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.masked.combining import canonical_dims, combined, greatest, least
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra._tensor import Tensor
    from candelabra.typing import DType


def _floating(x: Tensor, dtype: DType | None) -> Tensor:
    return x if dtype is None or dtype is x.dtype else x.to(dtype)


@public(namespace="masked")
def softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` along ``dim`` of what the mask selects, 0 elsewhere; NaN where nothing is selected."""
    return _floating(combined(input, mask, least(input)), dtype).softmax(canonical_dims(dim, input.ndim)[0])


@public(namespace="masked")
def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of :func:`softmax`, minus infinity where the mask leaves out."""
    return _floating(combined(input, mask, least(input)), dtype).log_softmax(canonical_dims(dim, input.ndim)[0])


@public(namespace="masked")
def softmin(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """:func:`softmax` of ``-input``."""
    return (-_floating(combined(input, mask, greatest(input)), dtype)).softmax(canonical_dims(dim, input.ndim)[0])


@public(namespace="masked")
def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """What the mask selects over its vector norm along ``dim``, or over ``eps`` where that is larger; 0 elsewhere."""
    from candelabra.linalg import vector_norm

    work = combined(input, mask, 0)
    length = vector_norm(work, ord, canonical_dims(dim, input.ndim)[0], True, dtype=dtype or input.dtype)
    out: Tensor = work / length.clamp(min=eps)
    return out


@public(namespace="masked")
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Running sums along ``dim`` with what is masked out counted as 0, in the input's dtype unless one is named."""
    wanted = dtype or input.dtype
    return combined(input, mask, 0).cumsum(canonical_dims(dim, input.ndim)[0], dtype=wanted)


@public(namespace="masked")
def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """Running products along ``dim`` with what is masked out counted as 1, in the input's dtype unless one is named."""
    wanted = dtype or input.dtype
    return combined(input, mask, 1).cumprod(canonical_dims(dim, input.ndim)[0], dtype=wanted)
