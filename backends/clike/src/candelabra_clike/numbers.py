"""Python numbers beside arrays: as which arguments of a kernel they arrive, and how its text makes a value of them.

No dialect takes every type as an argument: small integers come as 32 bits, complex numbers as their parts. A Python
float that float32 cannot hold becomes an infinity, an integer wraps, as in the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype

from candelabra_clike.types import CTYPES

LIMIT = 2.0**128 - 2.0**103
"""From here on a number rounds to infinity in float32."""


def number_types(d: dtype) -> tuple[str, ...]:
    """The types of the kernel arguments in which a Python number arrives beside arrays of a dtype."""
    if d.category == COMPLEX:
        part = CTYPES[d.to_real()].value
        return (part, part)
    if d.category == FLOATING:
        return (CTYPES[d].value,)
    return (("i" if d.is_signed else "u") + ("64" if d.itemsize == 8 else "32"),)


def number_word(d: dtype, first: int, rounded: bool = False) -> str:
    """The expression of that number as a value; ``first`` is the place of its first part among the numbers.

    ``rounded``: numbers beside half types are rounded to them (comparisons need it, arithmetic is better without).
    """
    ctype = CTYPES[d]
    if d.category == COMPLEX:
        return f"{ctype.value.upper()}(s{first}, s{first + 1})"
    if rounded and d.category == FLOATING and ctype.converts:
        return ctype.load(ctype.store(f"s{first}"))
    return f"(({ctype.value})s{first})"


def single(value: Any) -> float:
    """A number as one that float32 can hold, but for the rounding."""
    number = float(value)
    if -LIMIT < number < LIMIT or number != number:
        return number
    return inf if number > 0 else -inf


def wrapping(d: dtype) -> Callable[[Any], tuple[Any, ...]]:
    """How a Python number becomes an integer of a dtype."""
    bits = 8 * d.itemsize
    mask, sign = (1 << bits) - 1, (1 << bits >> 1) if d.is_signed else 0

    def wrap(value: Any) -> tuple[Any, ...]:
        return (((int(value) + sign) & mask) - sign,)

    return wrap


def converter(d: dtype) -> Callable[[Any], tuple[Any, ...]]:
    """The function that turns a Python number into the arguments that :func:`number_types` names."""
    part = single if d.to_real().itemsize <= 4 else float
    if d.category == COMPLEX:
        return lambda value: (part(value.real), part(value.imag))
    if d.category == FLOATING:
        return lambda value: (part(value),)
    if d.category == BOOL:
        return lambda value: (1 if value else 0,)
    return wrapping(d)
