"""Exponentials, logarithms and hyperbolic functions, which the library implements."""

from __future__ import annotations

CONTRACTED = True

_NAMES = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
    "sigmoid",
)  # fmt: skip

EXPRESSIONS = {name: dict.fromkeys(("float", "complex"), f"{name}_{{T}}({{a}})") for name in _NAMES}
