"""The types of values, and C's rules for operations of integers."""

from __future__ import annotations

from math import inf
from typing import Final

from candelabra.dtypes import BOOL, dtype

from candelabra_clike.types import CTYPES

INDEX: Final = "INDEX"
"""The type of indices: 32 bits, or 64 in the wide variant of a kernel, whose indices are below 2**63 too."""
UNSIGNED: Final = {"bool": 8, "u8": 8, "u16": 16, "u32": 32, INDEX: 63, "u64": 64}
SIGNED: Final = {"i8": 8, "i16": 16, "i32": 32, "i64": 64}
INTEGERS: Final = {**UNSIGNED, **SIGNED}
"""The bits of each integer type. A ``bool`` is 0 or 1."""
FLOATS: Final = ("f32", "f64")
COMPLEX: Final = {"c64": "f32", "c128": "f64"}
"""The type of the parts of each complex type."""


def value_type(d: dtype) -> str:
    """Return the type of the values of a dtype."""
    return "bool" if d.category == BOOL else CTYPES[d].value


def unsigned(type: str) -> str:
    """Return the unsigned integer of the size of a real type."""
    return f"u{INTEGERS[type]}" if type in INTEGERS else f"u{type[1:]}"


def wrapping(type: str) -> str:
    """Return the unsigned integer in which arithmetic of an integer type wraps around: of 32 bits or more, because C
    promotes narrower ones to signed integers, whose overflow is undefined.
    """
    return f"u{max(32, INTEGERS[type])}"


def part_type(type: str) -> str:
    """Return the type of the parts of a complex type; that of a real type is its own."""
    return COMPLEX.get(type, type)


def lowest(type: str) -> int | float:
    """Return the smallest number of a real type, the identity element of the maximum."""
    return -inf if type in FLOATS else -(1 << SIGNED[type] - 1) if type in SIGNED else 0


def highest(type: str) -> int | float:
    """Return the largest number of a real type, the identity element of the minimum."""
    return inf if type in FLOATS else (1 << INTEGERS[type] - (type in SIGNED)) - 1


def promoted(type: str) -> str:
    """Return the type of a single integer operand in an operation."""
    return "i32" if INTEGERS.get(type, 32) < 32 else type


def common(first: str, second: str) -> str | None:
    """Return the type in which C computes with two operands, or None if one of them has to be cast."""
    if first == second:
        return promoted(first)
    for group in (UNSIGNED, SIGNED):
        if first in group and second in group:
            return promoted(max(first, second, key=group.__getitem__))
    return None


def holds(target: str, source: str) -> bool:
    """Return whether a type has every value of another one, so that C converts without a cast."""
    if target == source:
        return True
    if target not in INTEGERS or source not in INTEGERS or target == "bool":
        return False
    bits = INTEGERS[source] if source != "bool" else 1
    return INTEGERS[target] > bits and (target in SIGNED or source in UNSIGNED)
