"""Conversion of Python numbers to the dtype of a tensor."""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype

NUMBERS = (int, float, bool, complex)
OVERFLOW = "value cannot be converted to type {} without overflow"


def number_for(value: Any, d: dtype) -> Any:
    """Return a number, or the value of a 0-d array, as a Python number in the range of ``d``; integer dtypes truncate
    it.

    Raises ``TypeError`` if it is not a number, ``RuntimeError`` if it is out of the range of the dtype.
    """
    category = d.category
    if category == FLOATING and type(value) is float:
        return value
    if not isinstance(value, NUMBERS):
        if getattr(value, "shape", None) != () or not hasattr(value, "item"):
            owner = type(value).__module__
            name = type(value).__name__ if owner == "builtins" else f"{owner}.{type(value).__name__}"
            raise TypeError(f"can't assign a {name} to a {d.name} tensor")
        value = value.item()
    if category == COMPLEX:
        return value
    overflow = RuntimeError(OVERFLOW.format(d.c_name))
    if isinstance(value, complex):
        if value.imag:
            raise overflow
        value = value.real
    if category == BOOL:
        return bool(value)
    if category == FLOATING:
        return value
    try:
        value = int(value)
    except (ValueError, OverflowError):  # NaN, infinity
        raise overflow from None
    bits = d.itemsize * 8
    signed = d.is_signed
    high = (1 << (bits - 1 if signed else bits)) - 1
    if not (-high - 1 if signed else -high) <= value <= high:
        raise overflow
    return value if signed or value >= 0 else value + (1 << bits)
