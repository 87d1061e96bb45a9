"""Calls with tensors of a layout other than strided: who implements a layout registers its operators here."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._keys import LAYOUT_MASK

if TYPE_CHECKING:
    from candelabra._records.record import Operator

ServeLayout = Callable[["Operator[..., Any]", bool], Callable[..., Any]]
"""A function of an operator and whether its in-place form is called, which returns the function that serves it."""
_LAYOUTS: Final[dict[int, ServeLayout]] = {}
"""Layout bit of the key → the function that serves its tensors."""


def register_layout(bit: int, serve: ServeLayout) -> None:
    """Let ``serve`` return the function of each operator for calls with a layout's bit in the key."""
    _LAYOUTS[bit] = serve


def operator_of_layout(op: Operator[..., Any], key: int, inplace: bool) -> Callable[..., Any]:
    """Return the function that serves an operator for the layout in a key."""
    return _LAYOUTS[key & LAYOUT_MASK](op, inplace)
