"""Classification, signs and adjacent floating-point numbers, and the sign and absolute value of other numbers."""

from __future__ import annotations

from math import inf

from candelabra.dtypes import bfloat16, dtype, finfo, float16, float32, float64

from candelabra_clike.expressions import Entry, Expression
from candelabra_clike.language import Value, bits, call, cast, pair, select, wrapping


def _replace_special(x: Value, nan: Value | None, posinf: Value | None, neginf: Value | None, largest: float) -> Value:
    """Return a real number with NaN and infinities replaced."""
    high, low = (largest if posinf is None else posinf), (-largest if neginf is None else neginf)
    finite = select(x == inf, high, select(x == -inf, low, x))
    return select(x != x, 0 if nan is None else nan, finite)


def _nan_to_num(d: dtype) -> Expression:
    largest = finfo(d).max

    def expression(a: Value, nan: Value | None, posinf: Value | None, neginf: Value | None) -> Value:
        if a.type[0] != "c":
            return _replace_special(a, nan, posinf, neginf, largest)
        low, high, other = (None if x is None else x.real for x in (neginf, posinf, nan))
        return pair(*[_replace_special(part, other, high, low, largest) for part in (a.real, a.imag)])

    return expression


def _integer_abs(a: Value) -> Value:
    wide = cast(wrapping(a.type), a)
    return cast(a.type, select(a < 0, 0 - wide, wide))


def _sign(a: Value) -> Value:
    return select(a > 0, 1, select(a < 0, -1, select(a == 0, 0, a)))


def _for_kinds(real: Expression, complex: Expression, integer: int) -> Entry:
    return {"float": real, "complex": complex, **dict.fromkeys(("integer", "bool"), lambda: integer)}


EXPRESSIONS: dict[str, Entry] = {
    "isnan": _for_kinds(lambda a: a != a, lambda a: (a.real != a.real) | (a.imag != a.imag), 0),
    "isinf": _for_kinds(
        lambda a: call("abs", a) == inf, lambda a: (call("abs", a.real) == inf) | (call("abs", a.imag) == inf), 0
    ),
    "isfinite": _for_kinds(
        lambda a: call("abs", a) < inf, lambda a: (call("abs", a.real) < inf) & (call("abs", a.imag) < inf), 1
    ),
    "isposinf": {"float": lambda a: a == inf, "integer": lambda: 0, "bool": lambda: 0},
    "isneginf": {"float": lambda a: a == -inf, "integer": lambda: 0, "bool": lambda: 0},
    "isreal": {"float": lambda: 1, "complex": lambda a: a.imag == 0, "integer": lambda: 1, "bool": lambda: 1},
    "signbit": {
        "f32": lambda a: bits(a) >> 31 != 0,
        "f64": lambda a: bits(a) >> 63 != 0,
        "signed": lambda a: a < 0,
        "unsigned": lambda: 0,
        "bool": lambda: 0,
    },
    "copysign": {"float": lambda a, b: call("copysign", call("abs", a), b)},
    "nextafter": {
        "float16": lambda a, b: call("nextafter_f16", a, b),
        "bfloat16": lambda a, b: call("nextafter_bf16", a, b),
        "float": lambda a, b: call("nextafter", a, b),
    },
    "frexp_along": {"float": lambda a, b: call("frexp_along", a, b)},
    "abs": {
        "float": lambda a: call("abs", a),
        "signed": _integer_abs,
        "unsigned": lambda a: a,
        "bool": lambda a: a,
        "complex": lambda a: call("hypot", a.real, a.imag),
    },
    "sign": {
        "float": _sign,
        "signed": lambda a: cast(a.type, (a > 0) - (a < 0)),
        "unsigned": lambda a: a != 0,
        "bool": lambda a: a,
    },
    "nan_to_num": {
        "float16": _nan_to_num(float16),
        "bfloat16": _nan_to_num(bfloat16),
        "f32": _nan_to_num(float32),
        "f64": _nan_to_num(float64),
        "c64": _nan_to_num(float32),
        "c128": _nan_to_num(float64),
        "any": lambda a: a,
    },
}
EXPRESSIONS["sgn"] = {**EXPRESSIONS["sign"], "complex": lambda a: call("sgn", a)}
