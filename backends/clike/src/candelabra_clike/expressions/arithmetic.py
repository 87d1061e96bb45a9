"""Sums, products, quotients and related operators."""

from __future__ import annotations

from collections.abc import Callable

from candelabra.dtypes import bfloat16, float16

from candelabra_clike.expressions import Entry
from candelabra_clike.language import Value, call, cast, refuse, round_to, select, wrapping


# Integers wrap around. Signed overflow is undefined in C, so they are computed as unsigned ones.
def _wide(x: Value) -> Value:
    return cast(wrapping(x.type), x)


def _sum(a: Value, b: Value) -> Value:
    return cast(a.type, _wide(a) + _wide(b))


def _difference(a: Value, b: Value) -> Value:
    return cast(a.type, _wide(a) - _wide(b))


def _product(a: Value, b: Value) -> Value:
    return cast(a.type, _wide(a) * _wide(b))


def _integer_addcmul(a: Value, b: Value, c: Value, value: Value) -> Value:
    return cast(a.type, _wide(a) + _wide(value) * _wide(b) * _wide(c))


def _divided_by(function: str, a: Value, b: Value) -> Value:
    """Return an integer function of a quotient or a remainder, which refuses a divisor of 0."""
    return refuse(b == 0, "DIVISION_BY_ZERO", cast(a.type, call(function, a, b)))


def _of_sizes(function: str, a: Value, b: Value) -> Value:
    """Return a function of the absolute values of two integers."""
    sizes = (call("abs_i64", a), call("abs_i64", b)) if a.type[0] == "i" else (a, b)
    return cast(a.type, call(function, *sizes))


def _lerp(a: Value, b: Value, c: Value) -> Value:
    # From the nearer end, so that a weight of 1 gives the end exactly.
    return select(call("abs", c) < 0.5, a + c * (b - a), b - (b - a) * (1 - c))


def _complex_lerp(a: Value, b: Value, c: Value) -> Value:
    near = call("hypot", c.real, c.imag) < 0.5
    return select(near, a + call("product", c, b - a), b - call("product", b - a, 1 - c))


def _scaled(combined: Callable[[Value, Value], Value]) -> Entry:
    """Return the entry of ``a + alpha * b`` or of ``a - alpha * b``, rounded twice like two operators."""
    return {
        "float": lambda a, b, alpha: combined(a, b * alpha),
        "integer": lambda a, b, alpha: cast(a.type, combined(_wide(a), _wide(b) * _wide(alpha))),
        "complex": lambda a, b, alpha: combined(a, call("product", b, alpha)),
    }


EXPRESSIONS: dict[str, Entry] = {
    "add_scaled": _scaled(lambda a, b: a + b),
    "sub_scaled": _scaled(lambda a, b: a - b),
    "add": {
        "float": lambda a, b: a + b, "integer": _sum, "bool": lambda a, b: a | b, "complex": lambda a, b: a + b,
    },
    "sub": {"float": lambda a, b: a - b, "integer": _difference, "complex": lambda a, b: a - b},
    "mul": {
        "float": lambda a, b: a * b, "integer": _product, "bool": lambda a, b: a & b,
        "complex": lambda a, b: call("product", a, b),
    },
    "div": {"float": lambda a, b: a / b, "complex": lambda a, b: call("divide", a, b)},
    "neg": {"float": lambda a: -a, "integer": lambda a: cast(a.type, 0 - _wide(a)), "complex": lambda a: -a},
    "reciprocal": {"float": lambda a: 1 / a, "complex": lambda a: call("divide", 1, a)},
    "square": {
        "float": lambda a: a * a, "integer": lambda a: _product(a, a), "complex": lambda a: call("product", a, a),
    },
    "floor_divide": {
        "float": lambda a, b: call("floor_divide", a, b),
        "signed": lambda a, b: _divided_by("floor_divide", a, b),
        "unsigned": lambda a, b: _divided_by("trunc_divide", a, b),
    },
    "trunc_divide": {
        "float": lambda a, b: call("trunc", a / b),
        # The quotient is rounded to the half type before it is truncated.
        "float16": lambda a, b: call("trunc", round_to(float16, a / b)),
        "bfloat16": lambda a, b: call("trunc", round_to(bfloat16, a / b)),
        "integer": lambda a, b: _divided_by("trunc_divide", a, b),
    },
    "remainder": {
        "float": lambda a, b: call("remainder", a, b),
        "signed": lambda a, b: _divided_by("remainder", a, b),
        "unsigned": lambda a, b: _divided_by("fmod", a, b),
    },
    "fmod": {"float": lambda a, b: call("fmod", a, b), "integer": lambda a, b: _divided_by("fmod", a, b)},
    "gcd": {"integer": lambda a, b: _of_sizes("gcd_u64", a, b)},
    "lcm": {"integer": lambda a, b: _of_sizes("lcm_u64", a, b)},
    "hypot": {"float": lambda a, b: call("hypot", a, b)},
    "addcmul": {
        "float": lambda a, b, c, value: a + b * c * value,
        "integer": _integer_addcmul,
        "bool": lambda a, b, c, value: a | (value & b & c),
        "complex": lambda a, b, c, value: a + call("product", call("scale", b, value), c),
    },
    "addcdiv": {
        "float": lambda a, b, c, value: a + value * b / c,
        "complex": lambda a, b, c, value: a + call("divide", call("scale", b, value), c),
    },
    "lerp": {"float": _lerp, "complex": _complex_lerp},
}  # fmt: skip
