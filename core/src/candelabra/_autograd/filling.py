"""Tensors full of one number that the engine makes: like another tensor, so that a level sees them made.

The record is looked up by name, not imported: operators are declared on top of the engine.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._records.record import OPERATORS

if TYPE_CHECKING:
    from candelabra._tensor import Tensor
    from candelabra.dtypes import dtype


def filled_like(like: Tensor, value: Any, shape: tuple[int, ...] | None = None, dtype: dtype | None = None) -> Tensor:
    """``value`` in the shape, in the dtype and on the device of ``like``, unless another shape or dtype is given."""
    wanted = tuple(like._payload.shape) if shape is None else shape
    made: Tensor = OPERATORS["new_full"].function(like, wanted, value, dtype=dtype)
    return made


def zeros_like(like: Tensor) -> Tensor:
    """Zeros like a gradient; not ``g * 0``, which is NaN where ``g`` is infinite."""
    return filled_like(like, 0)
