"""Trigonometric functions and their inverses, which the library implements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from candelabra_clike.expressions import Entry, function_of_one
from candelabra_clike.language import Value, call, rare

CONTRACTED = True

NEAR: Final = {"f32": 1024, "f64": 1 << 20}
"""The arguments up to which the library subtracts multiples of pi / 2, which takes neither integers nor a branch."""
_NAMES = ("asin", "acos", "atan")


def _periodic(name: str, type: str) -> Callable[[Value], Value]:
    def value(a: Value) -> Value:
        return rare(call("abs", a) > NEAR[type], call(name, a), call(f"{name}_near", a))

    return value


EXPRESSIONS: dict[str, Entry] = {
    **{
        name: {**{type: _periodic(name, type) for type in NEAR}, "complex": function_of_one(name)}
        for name in ("sin", "cos", "tan")
    },
    **{name: dict.fromkeys(("float", "complex"), function_of_one(name)) for name in _NAMES},
    "atan2": {"float": lambda a, b: call("atan2", a, b)},
}
