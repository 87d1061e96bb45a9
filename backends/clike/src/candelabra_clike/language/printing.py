"""Expressions as C text, in the words that every dialect defines."""

from __future__ import annotations

from math import inf
from typing import Final

from candelabra_clike.language.types import COMPLEX
from candelabra_clike.language.values import (
    BITWISE,
    Cast,
    Constant,
    FunctionCall,
    Number,
    Operation,
    Part,
    Refuse,
    Select,
    Value,
    Variable,
)

PRIMARY, UNARY, CONDITIONAL = 16, 14, 3
BINARY: Final = {
    "*": 13, "+": 12, "-": 12, "<<": 11, ">>": 11, "<": 10, "<=": 10, ">": 10, ">=": 10, "==": 9, "!=": 9,
    "&": 8, "^": 7, "|": 6,
}  # fmt: skip
"""C's precedence of operators."""


def text(value: Value, rare: str = "") -> str:
    """Return the expression of a value.

    ``rare`` names the branch of every :func:`~candelabra_clike.language.functions.rare` choice that the text has:
    ``usual``, or by default both.
    """
    return _printed(value, rare)[0]


def type_name(type: str) -> str:
    """Return the C type of a type: bools are bytes."""
    return "u8" if type == "bool" else type


def _printed(value: Value, rare: str) -> tuple[str, int]:
    """Return the text of a node and the precedence of its outermost operator."""
    match value:
        case Variable(name=name):
            return name, PRIMARY
        case Number():
            return _number(value), PRIMARY
        case Constant():
            return _constant(value)
        case Operation(of=(operand,), sign=sign):
            return sign + _bracketed(operand, UNARY + (sign == "-"), rare), UNARY
        case Operation(of=(first, second), sign=sign):
            return _binary(sign, first, second, rare)
        case FunctionCall(function=function, arguments=arguments):
            return f"{function}({', '.join(text(a, rare) for a in arguments)})", PRIMARY
        case Cast(of=of):
            return f"({type_name(value.type)}){_bracketed(of, UNARY, rare)}", UNARY
        case Part(of=of, name=name):
            return f"{_bracketed(of, PRIMARY, rare)}.{name}", PRIMARY
        case Select(condition=condition, chosen=chosen, other=other):
            if value.rare and rare == "usual":
                return _printed(other, rare)
            test, then = (_bracketed(x, CONDITIONAL + 1, rare) for x in (condition, chosen))
            return f"{test} ? {then} : {_bracketed(other, CONDITIONAL, rare)}", CONDITIONAL
    assert isinstance(value, Refuse)
    return f"(REFUSE({text(value.condition, rare)}, {value.reason}), {text(value.value, rare)})", PRIMARY


def _bracketed(value: Value, least: int, rare: str) -> str:
    printed, precedence = _printed(value, rare)
    return printed if precedence >= least else f"({printed})"


def _binary(sign: str, first: Value, second: Value, rare: str) -> tuple[str, int]:
    precedence = BINARY[sign]
    left, right = precedence, precedence + 1
    if sign in BITWISE:
        # C binds these less tightly than comparisons, which readers and compilers' warnings do not expect. A chain of
        # one of them is as clear without brackets.
        left = precedence if isinstance(first, Operation) and first.sign == sign else UNARY
        right = UNARY
    return f"{_bracketed(first, left, rare)} {sign} {_bracketed(second, right, rare)}", precedence


def _number(value: Number) -> str:
    if value.type in COMPLEX:
        return f"{value.type.upper()}({', '.join(value.arguments)})"
    return f"(({type_name(value.type)}){value.arguments[0]})"


def _constant(value: Constant) -> tuple[str, int]:
    number, type = value.number, value.type
    if type in COMPLEX:
        return f"{type.upper()}({number!r}, 0)", PRIMARY
    if isinstance(number, int):
        return (f"{number}" if abs(number) < 1 << 31 else _wide(number, type)), PRIMARY if number >= 0 else UNARY
    if number in (inf, -inf):
        sign = "-" if number < 0 else ""
        return f"{sign}INFINITE_{type.upper()}", UNARY if sign else PRIMARY
    return f"{number!r}{'f' if type == 'f32' else ''}", PRIMARY if number >= 0 else UNARY


def _wide(number: int, type: str) -> str:
    """Return an integer of more than 31 bits, which has no suffix that all dialects read alike."""
    return f"(({type})0x{number:X})"
