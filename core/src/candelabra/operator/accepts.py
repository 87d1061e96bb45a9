"""Which dtypes an operator refuses, checked once per key, in PyTorch's words."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, INTEGER, PYTHON_NAMES, dtype

if TYPE_CHECKING:
    from candelabra.operator.record import Operator

CLASSES: Final[dict[str, Callable[[dtype], bool]]] = {
    "real": lambda d: d.category != COMPLEX,
    "numeric": lambda d: d.category != BOOL,
    "real numeric": lambda d: d.category in (INTEGER, FLOATING),
    "floating": lambda d: d.category >= FLOATING,
    "real floating": lambda d: d.category == FLOATING,
    "integral": lambda d: d.category <= INTEGER,
    "complex": lambda d: d.category == COMPLEX,
    "signed": lambda d: d.category != BOOL,
}
"""The words that a record's ``accepts=`` may say."""


def refusal(op: Operator[..., Any], d: dtype) -> str | None:
    """Why ``op`` refuses ``d``, or None."""
    if op.accepts is None or CLASSES[op.accepts](d):
        return None
    return f"\"{op.name}\" not implemented for '{PYTHON_NAMES[d.name]}': it takes {op.accepts} dtypes"
