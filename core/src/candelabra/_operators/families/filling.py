"""Tensors with other content: the functional forms of writing a number."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._interchange.nested import fitted
from candelabra._operators.primitives.creation import filled
from candelabra._records.callables import public

if TYPE_CHECKING:
    from candelabra._tensor import Tensor


@public(method=False)
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like ``input`` with every element ``value``, a number or a 0-d tensor; see :func:`fill_`."""
    if not hasattr(value, "_payload"):
        return filled.function(input, fitted(value, input.dtype))
    if value.ndim:
        raise RuntimeError(f"fill only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    return filled.function(input, value.to(input.dtype))
