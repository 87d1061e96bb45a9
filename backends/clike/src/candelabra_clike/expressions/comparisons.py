"""Comparisons and logical operators.

The results are bools. A number compared with a half type is rounded to it first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

from candelabra_clike.expressions import Entry, Expression
from candelabra_clike.language import Value

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
}
EXPRESSIONS["eq"] = {**EXPRESSIONS["eq"], "complex": lambda a, b: (a.real == b.real) & (a.imag == b.imag)}
EXPRESSIONS["ne"] = {**EXPRESSIONS["ne"], "complex": lambda a, b: (a.real != b.real) | (a.imag != b.imag)}
