"""Expressions as C text, in the words that every dialect defines."""

from __future__ import annotations

from collections.abc import Set
from math import inf
from typing import Final

from candelabra_clike.language.types import COMPLEX, FLOATS, INDEX, INTEGERS
from candelabra_clike.language.values import (
    BITWISE,
    COMPARISONS,
    LOGICAL,
    Address,
    Cast,
    ComplexPart,
    Constant,
    Element,
    FunctionCall,
    Number,
    Operation,
    Refuse,
    Select,
    Value,
    Variable,
    VectorElement,
)
from candelabra_clike.library import signature

PRIMARY, UNARY, CONDITIONAL = 16, 14, 3
BINARY: Final = {
    "*": 13, "/": 13, "%": 13, "+": 12, "-": 12, "<<": 11, ">>": 11,
    "<": 10, "<=": 10, ">": 10, ">=": 10, "==": 9, "!=": 9,
    "&": 8, "^": 7, "|": 6, "&&": 5, "||": 4,
}  # fmt: skip
"""C's precedence of operators."""


def text(value: Value, form: str = "") -> str:
    """Return the expression of a value.

    ``form``: ``usual`` leaves out the costly branch of every :func:`~candelabra_clike.language.functions.rare` choice;
    a key of :data:`LANES` is the text for variables that are vectors, see :func:`is_vectorizable`.
    """
    return _printed(value, form)[0]


LANES: Final = {"vector4": 4, "vector": 8, "vector16": 16}
"""The elements of a vector, by the form of its text."""
FORMS: Final = {1: "", **{lanes: form for form, lanes in LANES.items()}}
"""The form of the text for one element, and for vectors of some lanes."""
VECTOR_TYPES: Final = frozenset((*FLOATS, *INTEGERS)) - {"bool", INDEX}
"""The types for which there are vectors of eight."""


def is_vectorizable(value: Value) -> bool:
    """Return whether the text of a value is valid if its variables are vectors.

    A comparison of vectors is a vector of 0 and -1, which only selects and combines with other comparisons. A library
    function has a form for vectors, ``exp_x8``, or it has none.
    """
    match value:
        case Variable() | Constant() | VectorElement():
            return value.type in VECTOR_TYPES
        case Cast(of=of):
            return value.type in VECTOR_TYPES and is_vectorizable(of)
        case Operation(of=of, sign=sign) if sign not in COMPARISONS:
            return all(operand.type == value.type and is_vectorizable(operand) for operand in of)
        case FunctionCall(function=function, arguments=arguments):
            return _vector_function(function, 8) is not None and all(map(is_vectorizable, arguments))
        case Select(condition=condition, chosen=chosen, other=other):
            selects = not value.rare and _selects_vectors(condition, value.type[1:])
            return selects and is_vectorizable(chosen) and is_vectorizable(other)
    return False


def _vector_function(name: str, lanes: int) -> str | None:
    """Return the form of a function of ``f32`` for vectors, if the library has one."""
    found = f"{name.removesuffix('_f32')}_x{lanes}"
    return found if name.endswith("_f32") and signature(found) is not None else None


def _selects_vectors(condition: Value, bits: str) -> bool:
    """Return whether a condition consists of comparisons of vectors with lanes of this size."""
    match condition:
        case Operation(of=of, sign=sign) if sign in COMPARISONS:
            return all(operand.type[1:] == bits and is_vectorizable(operand) for operand in of)
        case Operation(of=of, sign=sign) if sign in BITWISE:
            return all(_selects_vectors(operand, bits) for operand in of)
    return False


def selected_by_lanes(value: Value, lanes: Set[str]) -> bool:
    """Return whether each choice in a value is one of vectors, if the variables ``lanes`` are vectors and others are
    not: C has no choice by a vector between two scalars, nor one of two vectors by a scalar.
    """

    def varies(part: Value) -> bool:
        return any(isinstance(node, Variable) and node.name in lanes for node in part.walk())

    choices = [node for node in value.walk() if isinstance(node, Select)]
    return all(varies(node.condition) and (varies(node.chosen) or varies(node.other)) for node in choices)


def type_name(type: str) -> str:
    """Return the C type of a type: bools are bytes."""
    return "u8" if type == "bool" else type


def _printed(value: Value, form: str) -> tuple[str, int]:
    """Return the text of a node and the precedence of its outermost operator."""
    match value:
        case Variable(name=name):
            return name, PRIMARY
        case Number():
            return _number(value), PRIMARY
        case Element(array=array, at=at, converts=converts):
            loaded = array + "".join(f"[{text(each)}]" for each in at)
            return f"load_{converts}({loaded})" if converts else loaded, PRIMARY
        case VectorElement(array=array, at=index, private=private, lanes=lanes):
            pointer = f"{array} + {_bracketed(index, BINARY['+'] + 1, '')}"
            return f"{'PRIVATE' if private else 'LOAD'}_X{lanes}({value.type}, {pointer})", PRIMARY
        case Address(array=array, at=index):
            return f"(u64)({array} + {_bracketed(index, BINARY['+'] + 1, form)})", UNARY
        case Constant():
            return _constant(value)
        case Operation(of=(operand,), sign=sign):
            return sign + _bracketed(operand, UNARY + (sign == "-"), form), UNARY
        case Operation(of=(first, second), sign=sign):
            return _binary(sign, first, second, form)
        case FunctionCall(function=function, arguments=arguments):
            word = _vector_function(function, LANES[form]) if form in LANES else function
            return f"{word}({', '.join(text(a, form) for a in arguments)})", PRIMARY
        case Cast(of=of) if form in LANES:
            return f"AS_{value.type.upper()}X{LANES[form]}({text(of, form)})", PRIMARY
        case Cast(of=of):
            return f"({type_name(value.type)}){_bracketed(of, UNARY, form)}", UNARY
        case ComplexPart(of=of, name=name):
            return f"{_bracketed(of, PRIMARY, form)}.{name}", PRIMARY
        case Select(condition=condition, chosen=chosen, other=other):
            if value.rare:
                return _printed(other if form == "usual" else chosen, form)
            test, then = (_bracketed(x, CONDITIONAL + 1, form) for x in (condition, chosen))
            return f"{test} ? {then} : {_bracketed(other, CONDITIONAL, form)}", CONDITIONAL
    assert isinstance(value, Refuse)
    return f"(REFUSE({text(value.condition, form)}, {value.reason}), {text(value.value, form)})", PRIMARY


def _bracketed(value: Value, least: int, form: str) -> str:
    printed, precedence = _printed(value, form)
    return printed if precedence >= least else f"({printed})"


def _binary(sign: str, first: Value, second: Value, form: str) -> tuple[str, int]:
    precedence = BINARY[sign]
    left, right = precedence, precedence + 1
    if sign in BITWISE or sign in LOGICAL:
        # C binds these less tightly than comparisons, which readers and compilers' warnings do not expect. A chain of
        # one of them is as clear without brackets.
        left = precedence if isinstance(first, Operation) and first.sign == sign else UNARY
        right = UNARY
    return f"{_bracketed(first, left, form)} {sign} {_bracketed(second, right, form)}", precedence


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
    if number != number:
        return f"NAN_{type.upper()}", PRIMARY
    if number in (inf, -inf):
        sign = "-" if number < 0 else ""
        return f"{sign}INFINITE_{type.upper()}", UNARY if sign else PRIMARY
    return f"{number!r}{'f' if type == 'f32' else ''}", PRIMARY if number >= 0 else UNARY


def _wide(number: int, type: str) -> str:
    """Return an integer of more than 31 bits, which has no suffix that all dialects read alike."""
    return f"(({type})0x{number & (1 << INTEGERS[type]) - 1:X})"
