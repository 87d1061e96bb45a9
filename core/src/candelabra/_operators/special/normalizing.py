"""Exponentials that sum to 1 and their logarithms, by the names and arguments of ``special``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.fronts import softmax as fronts
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


@public(namespace="special")
def softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """``exp(input) / sum(exp(input))`` along ``dim``; ``dtype`` casts the input first."""
    return fronts.softmax(input, dim, dtype=dtype)


@public(namespace="special")
def log_softmax(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """``log(softmax(input))`` along ``dim``, without overflow; ``dtype`` casts the input first."""
    return fronts.log_softmax(input, dim, dtype=dtype)
