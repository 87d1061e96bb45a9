"""Conversions between dense and sparse tensors; see :mod:`candelabra.sparse`. A sparse tensor has its own methods."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._layout import sparse_coo
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra.typing import DType, Tensor


@public(is_function=False)
def to_sparse(input: Tensor, sparse_dim: int | None = None, *, layout: Any = None) -> Tensor:
    """Return the elements that are not 0 as a sparse tensor.

    Its first ``sparse_dim`` dims are sparse, by default all.
    Raises ``RuntimeError`` for a ``sparse_dim`` out of range and for a ``layout`` other than ``candelabra.sparse_coo``.
    """
    from candelabra._sparse.construction import sparse

    if layout is not None and layout is not sparse_coo:
        raise RuntimeError(f"to_sparse(): layout {layout!r} is not supported, the only one is candelabra.sparse_coo")
    return sparse(input, sparse_dim)


@public(is_function=False)
def to_sparse_coo(input: Tensor) -> Tensor:
    """Return the elements that are not 0 as a sparse tensor in coordinate format."""
    return to_sparse(input)


@public(is_function=False)
def to_dense(input: Tensor, dtype: DType | None = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return the tensor itself, in ``dtype`` if it is given. Of a sparse tensor: its elements as a dense tensor."""
    return input if dtype is None else input.to(dtype=dtype)


@public(is_function=False)
def sparse_mask(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements at the positions of a sparse tensor of the same shape, as a sparse tensor.

    Raises ``TypeError`` unless ``mask`` is sparse, and ``RuntimeError`` if the shapes differ.
    """
    from candelabra._sparse.operators import masked
    from candelabra._sparse.tensor import SparseTensor

    if not isinstance(mask, SparseTensor):
        raise TypeError(f"sparse_mask(): argument 'mask' must be a sparse Tensor, not a dense {type(mask).__name__}")
    return masked(input, mask)
