"""Trigonometric functions and their inverses, which the library implements."""

from __future__ import annotations

CONTRACTED = True

_NAMES = ("sin", "cos", "tan", "asin", "acos", "atan")

EXPRESSIONS = {name: dict.fromkeys(("float", "complex"), f"{name}_{{T}}({{a}})") for name in _NAMES}
EXPRESSIONS["atan2"] = {"float": "atan2_{T}({a}, {b})"}
