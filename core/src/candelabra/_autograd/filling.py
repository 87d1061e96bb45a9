"""Constant tensors for the engine. They are created like another tensor, so that a virtual device sees the call.

The record is looked up by name and not imported: operators are declared on top of the engine.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._records.registry import OPERATORS

if TYPE_CHECKING:
    from candelabra._tensor import Tensor
    from candelabra.dtypes import dtype


def filled_like(like: Tensor, value: Any, shape: tuple[int, ...] | None = None, dtype: dtype | None = None) -> Tensor:
    """Return a tensor filled with ``value`` on the device of ``like``, by default with its shape and dtype."""
    wanted = like._payload.shape if shape is None else shape
    made: Tensor = OPERATORS["new_full"].canonical(like, wanted, value, dtype)
    return made


def zeros_like(like: Tensor) -> Tensor:
    """Return zeros like a gradient. ``g * 0`` would be NaN where ``g`` is infinite."""
    return filled_like(like, 0)
