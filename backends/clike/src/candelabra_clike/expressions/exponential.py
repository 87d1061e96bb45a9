"""Exponentials, logarithms and hyperbolic functions, which the library implements."""

from __future__ import annotations

from candelabra_clike.expressions import Entry, function_of_one

CONTRACTED = True

_NAMES = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "sigmoid",
)  # fmt: skip

EXPRESSIONS: dict[str, Entry] = {name: dict.fromkeys(("float", "complex"), function_of_one(name)) for name in _NAMES}
