"""Bitwise operators of integers and bools.

A shift by a negative count, or by the width or more, shifts out all bits.
"""

from __future__ import annotations

from candelabra_clike.expressions import Entry
from candelabra_clike.language import Value, cast, constant, select, unsigned
from candelabra_clike.language.types import INTEGERS


def _beyond(a: Value, b: Value) -> Value:
    return cast(unsigned(a.type), b) >= INTEGERS[a.type]


def _left(a: Value, b: Value) -> Value:
    return select(_beyond(a, b), 0, cast(a.type, cast(unsigned(a.type), a) << b))


def _right(a: Value, b: Value) -> Value:
    return select(_beyond(a, b), 0, cast(a.type, a >> b))


def _signed_right(a: Value, b: Value) -> Value:
    return select(_beyond(a, b), select(a < 0, -1, constant(a.type, 0)), cast(a.type, a >> b))


EXPRESSIONS: dict[str, Entry] = {
    "bitwise_and": dict.fromkeys(("integer", "bool"), lambda a, b: a & b),
    "bitwise_or": dict.fromkeys(("integer", "bool"), lambda a, b: a | b),
    "bitwise_xor": dict.fromkeys(("integer", "bool"), lambda a, b: a ^ b),
    "bitwise_not": {"integer": lambda a: cast(a.type, ~a), "bool": lambda a: ~a},
    "bitwise_left_shift": {"integer": _left},
    "bitwise_right_shift": {"signed": _signed_right, "unsigned": _right},
}
