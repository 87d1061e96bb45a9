"""Reductions that PyTorch overloads: ``max``, ``min``, ``var`` and ``std``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra.fronts.registry import front
from candelabra.ops import arithmetic, reductions
from candelabra.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


@front
def max(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The largest element; with a tensor as second argument :func:`maximum`; with ``dim`` a pair (values, indices)."""
    if dim is None:
        return reductions.amax(input)
    return arithmetic.maximum(input, dim) if isinstance(dim, Tensor) else reductions.max_dim(input, dim, keepdim)


@front
def min(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element; with a tensor as second argument :func:`minimum`; with ``dim`` a pair (values, indices)."""
    if dim is None:
        return reductions.amin(input)
    return arithmetic.minimum(input, dim) if isinstance(dim, Tensor) else reductions.min_dim(input, dim, keepdim)


def _correction(dim: Any, unbiased: bool | None, correction: float) -> tuple[Any, float]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return dim, correction if unbiased is None else float(unbiased)


@front
def var(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float = 1,
) -> Tensor:
    """The variance over ``dim``; divides by ``n - correction`` (``unbiased``: the older name of correction 1 or 0)."""
    dim, correction = _correction(dim, unbiased, correction)
    return reductions.var(input, dim, correction=correction, keepdim=keepdim)


@front
def std(
    input: Tensor,
    dim: int | Sequence[int] | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float = 1,
) -> Tensor:
    """The standard deviation over ``dim``; see :func:`var`."""
    dim, correction = _correction(dim, unbiased, correction)
    return reductions.std(input, dim, correction=correction, keepdim=keepdim)
