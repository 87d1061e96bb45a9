"""Special functions: those of the library, under the operators' names."""

from __future__ import annotations

CONTRACTED = True

EXPRESSIONS = {
    "erf": {"float": "erf_{T}({a})"},
    "erfc": {"float": "erfc_{T}({a})"},
    "special_erfcx": {"float": "erfcx_{T}({a})"},
    "special_ndtr": {"float": "ndtr_{T}({a})"},
    "special_log_ndtr": {"float": "log_ndtr_{T}({a})"},
}
