"""Comparisons, logical and bitwise operators, and selection of an operand: by a mask, by comparison, by limits.

The results of comparisons are bools. A number compared with a half type is rounded to it first. A shift by a negative
count, or by the width or more, shifts out all bits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from candelabra_clike.expressions import Entry, Expression
from candelabra_clike.language import Value, cast, constant, select, unsigned
from candelabra_clike.language.types import INTEGERS

_REAL = {
    "ne": operator.ne, "eq": operator.eq, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip
_LOGIC = {"logical_and": operator.and_, "logical_or": operator.or_, "logical_xor": operator.xor}


def nonzero(x: Value) -> Value:
    """Return whether a number is not 0; NaN is not."""
    return (x.real != 0) | (x.imag != 0) if x.type[0] == "c" else x != 0


def _between(compare: Callable[[Value, Value], Value]) -> Expression:
    return lambda a, b: compare(a, b)


def _between_truths(combine: Callable[[Value, Value], Value]) -> Expression:
    return lambda a, b: combine(nonzero(a), nonzero(b))


def _beyond(a: Value, b: Value) -> Value:
    return cast(unsigned(a.type), b) >= INTEGERS[a.type]


def _left(a: Value, b: Value) -> Value:
    return select(_beyond(a, b), 0, cast(a.type, cast(unsigned(a.type), a) << b))


def _right(a: Value, b: Value) -> Value:
    return select(_beyond(a, b), 0, cast(a.type, a >> b))


def _signed_right(a: Value, b: Value) -> Value:
    return select(_beyond(a, b), select(a < 0, -1, constant(a.type, 0)), cast(a.type, a >> b))


# maximum and minimum propagate NaN; fmax and fmin ignore it.
_LARGER: dict[str, Expression] = {
    "float": lambda a, b: select((a > b) | (a != a), a, b),
    "integer": lambda a, b: select(a > b, a, b),
    "bool": lambda a, b: a | b,
}
_SMALLER: dict[str, Expression] = {
    "float": lambda a, b: select((a < b) | (a != a), a, b),
    "integer": lambda a, b: select(a < b, a, b),
    "bool": lambda a, b: a & b,
}


EXPRESSIONS: dict[str, Entry] = {
    **{name: dict.fromkeys(("number", "bool"), _between(compare)) for name, compare in _REAL.items()},
    **{
        name: {"bool": _between(combine), **dict.fromkeys(("number", "complex"), _between_truths(combine))}
        for name, combine in _LOGIC.items()
    },
    "logical_not": {
        "bool": lambda a: ~a,
        "number": lambda a: a == 0,
        "complex": lambda a: (a.real == 0) & (a.imag == 0),
    },
    "bitwise_and": dict.fromkeys(("integer", "bool"), lambda a, b: a & b),
    "bitwise_or": dict.fromkeys(("integer", "bool"), lambda a, b: a | b),
    "bitwise_xor": dict.fromkeys(("integer", "bool"), lambda a, b: a ^ b),
    "bitwise_not": {"integer": lambda a: cast(a.type, ~a), "bool": lambda a: ~a},
    "bitwise_left_shift": {"integer": _left},
    "bitwise_right_shift": {"signed": _signed_right, "unsigned": _right},
    "where": {"any": lambda a, b, c: select(a, b, c)},
    "masked_fill": {"any": lambda a, b, c: select(b, c, a)},
    "maximum": _LARGER,
    "minimum": _SMALLER,
    # Of two zeros the operand, not the limit, as PyTorch: clamp_min(-0.0, 0) is -0.0.
    "clamp_min": {**_LARGER, "float": lambda a, b: select((a >= b) | (a != a), a, b)},
    "clamp_max": {**_SMALLER, "float": lambda a, b: select((a <= b) | (a != a), a, b)},
    "fmax": {**_LARGER, "float": lambda a, b: select((a >= b) | (b != b), a, b)},
    "fmin": {**_SMALLER, "float": lambda a, b: select((a <= b) | (b != b), a, b)},
    "relu": {**dict.fromkeys(("float", "signed"), lambda a: select(a < 0, 0, a)), "unsigned": lambda a: a},
    "relu_backward": {"number": lambda a, b: select(b <= 0, 0, a), "bool": lambda a, b: b & a},
}
EXPRESSIONS["eq"] = {**EXPRESSIONS["eq"], "complex": lambda a, b: (a.real == b.real) & (a.imag == b.imag)}
EXPRESSIONS["ne"] = {**EXPRESSIONS["ne"], "complex": lambda a, b: (a.real != b.real) | (a.imag != b.imag)}
