"""Check the dtypes that an operator accepts, once per key, with PyTorch's error texts."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._keys import SCALAR_BITS, SCALAR_MASK
from candelabra.dtypes import BOOL, COMPLEX, DTYPE_MASK, FLOATING, INTEGER, bool_, dtype

if TYPE_CHECKING:
    from candelabra._records.record import Operator

CLASSES: Final[dict[str, Callable[[dtype], bool]]] = {
    "real": lambda d: d.category != COMPLEX,
    "numeric": lambda d: d.category != BOOL,
    "real numeric": lambda d: d.category in (INTEGER, FLOATING),
    "floating": lambda d: d.category >= FLOATING,
    "real floating": lambda d: d.category == FLOATING,
    "integral": lambda d: d.category <= INTEGER,
    "integer": lambda d: d.category == INTEGER,
    "complex": lambda d: d.category == COMPLEX,
    "signed": lambda d: d.category != BOOL,
    "numeric operands": lambda d: d.category != BOOL,
}
"""The possible values of a record's ``accepts=``. "numeric operands" checks each operand, before promotion."""
SUBTRACTIONS: Final = ("sub", "sub_scaled", "rsub")
INSTEAD: Final = {
    "neg": (
        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
        "`~` or `logical_not()` operator instead."
    ),
    "imag": "imag is not implemented for tensors with non-complex dtypes.",
    "positive": "The `+` operator, on a bool tensor is not supported.",
    **dict.fromkeys(
        SUBTRACTIONS,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
        "operator instead.",
    ),
}
"""The errors that recommend another operator."""
ONE_BOOL: Final = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
    "`~` or `logical_not()` operator instead."
)


def refusal(op: Operator[..., Any], d: dtype) -> str | None:
    """Return the reason why ``op`` refuses the dtype ``d``, or None if it accepts it."""
    if op.accepts is None or CLASSES[op.accepts](d):
        return None
    if op.name in INSTEAD:
        return INSTEAD[op.name]
    return not_implemented(op.name, d, op.accepts)


def not_implemented(name: str, d: dtype, accepts: str) -> str:
    """The text of the error for a dtype that is not of the class that an operator accepts."""
    return f"\"{name}\" not implemented for '{d.title}': it takes {accepts} dtypes"


def check_dtype(name: str, d: dtype, accepts: str) -> None:
    """``NotImplementedError``, which is a ``RuntimeError``, for a dtype that a public callable does not accept."""
    if not CLASSES[accepts](d):
        raise NotImplementedError(not_implemented(name, d, accepts))


def refused_operand(op: Operator[..., Any], key: int) -> str | None:
    """Return the reason why ``op`` refuses an operand with the given key, or None if it accepts it."""
    operands = key & (DTYPE_MASK | SCALAR_MASK)
    bools = bool_.bit | SCALAR_BITS[bool]
    if op.accepts != "numeric operands" or not operands & bools or not operands & ~bools:
        return None
    return ONE_BOOL
