"""Classification, signs and adjacent floating-point numbers, and the sign and absolute value of other numbers."""

from __future__ import annotations

from collections.abc import Callable

from candelabra.dtypes import bfloat16, finfo, float16, float32, float64

from candelabra_clike.expressions import Entry, Expression


def _replace_special(x: str, part: str, nan: str | None, posinf: str | None, neginf: str | None, largest: str) -> str:
    """Return the expression that replaces NaN and infinities of one real number.

    ``part`` selects the component of a replacement that is a complex number.
    """
    new = nan + part if nan else "0"
    high = posinf + part if posinf else largest
    low = neginf + part if neginf else f"-{largest}"
    return f"({x} != {x} ? {new} : {x} == INFINITE_{{P}} ? {high} : {x} == -INFINITE_{{P}} ? {low} : {x})"


def _nan_to_num(largest: float, suffix: str) -> Callable[[str | None, str | None, str | None], str]:
    def expression(nan: str | None, posinf: str | None, neginf: str | None) -> str:
        return _replace_special("{a}", "", nan, posinf, neginf, f"{largest!r}{suffix}")

    return expression


def _complex_nan_to_num(largest: float, suffix: str) -> Callable[[str | None, str | None, str | None], str]:
    def expression(nan: str | None, posinf: str | None, neginf: str | None) -> str:
        real, imaginary = (
            _replace_special(f"{{a}}{part}", ".x", nan, posinf, neginf, f"{largest!r}{suffix}") for part in (".x", ".y")
        )
        return f"{{W}}({real}, {imaginary})"

    return expression


def _for_kinds(real: str, complex: str, integer: str) -> dict[str, Expression]:
    return {"float": real, "complex": complex, "integer": integer, "bool": integer}


EXPRESSIONS: dict[str, Entry] = {
    "isnan": _for_kinds("{a} != {a}", "({a}.x != {a}.x) | ({a}.y != {a}.y)", "0"),
    "isinf": _for_kinds(
        "abs_{T}({a}) == INFINITE_{W}",
        "(abs_{R}({a}.x) == INFINITE_{P}) | (abs_{R}({a}.y) == INFINITE_{P})",
        "0",
    ),
    "isfinite": _for_kinds(
        "abs_{T}({a}) < INFINITE_{W}",
        "(abs_{R}({a}.x) < INFINITE_{P}) & (abs_{R}({a}.y) < INFINITE_{P})",
        "1",
    ),
    "isposinf": {"float": "{a} == INFINITE_{W}", "integer": "0", "bool": "0"},
    "isneginf": {"float": "{a} == -INFINITE_{W}", "integer": "0", "bool": "0"},
    "isreal": {"float": "1", "complex": "{a}.y == 0", "integer": "1", "bool": "1"},
    "signbit": {
        "f32": "BITS_U32({a}) >> 31",
        "f64": "BITS_U64({a}) >> 63",
        "signed": "{a} < 0",
        "unsigned": "0",
        "bool": "0",
    },
    "copysign": {"float": "copysign_{T}(abs_{T}({a}), {b})"},
    "nextafter": {
        "float16": "nextafter_f16({a}, {b})",
        "bfloat16": "nextafter_bf16({a}, {b})",
        "float": "nextafter_{T}({a}, {b})",
    },
    "abs": {
        "float": "abs_{T}({a})",
        "signed": "({T})({a} < 0 ? 0u - ({U}){a} : ({U}){a})",
        "unsigned": "{a}",
        "bool": "{a}",
        "complex": "hypot_{R}({a}.x, {a}.y)",
    },
    "sign": {
        "float": "{a} > 0 ? 1 : {a} < 0 ? -1 : {a} == 0 ? 0 : {a}",
        "signed": "({T})(({a} > 0) - ({a} < 0))",
        "unsigned": "{a} != 0",
        "bool": "{a}",
    },
    "nan_to_num": {
        "float16": _nan_to_num(finfo(float16).max, "f"),
        "bfloat16": _nan_to_num(finfo(bfloat16).max, "f"),
        "f32": _nan_to_num(finfo(float32).max, "f"),
        "f64": _nan_to_num(finfo(float64).max, ""),
        "c64": _complex_nan_to_num(finfo(float32).max, "f"),
        "c128": _complex_nan_to_num(finfo(float64).max, ""),
        "any": "{a}",
    },
}
EXPRESSIONS["sgn"] = {**EXPRESSIONS["sign"], "complex": "sgn_{T}({a})"}
