"""Trigonometric functions and their inverses, which the library implements."""

from __future__ import annotations

from candelabra_clike.expressions import Entry, function_of_one
from candelabra_clike.language import call

CONTRACTED = True

_NAMES = ("sin", "cos", "tan", "asin", "acos", "atan")

EXPRESSIONS: dict[str, Entry] = {
    **{name: dict.fromkeys(("float", "complex"), function_of_one(name)) for name in _NAMES},
    "atan2": {"float": lambda a, b: call("atan2", a, b)},
}
