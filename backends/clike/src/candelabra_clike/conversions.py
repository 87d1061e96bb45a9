"""Conversions between dtypes, and of Python numbers to arguments of kernels.

No dialect accepts every type as an argument. Small integers are passed as 32 bits, complex numbers as two floats. A
Python float out of range becomes an infinity and an integer wraps around, as on the reference device.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype, float16, float64, uint32

from candelabra_clike.language import Number, Value, call, cast, pair, round_to, value_type
from candelabra_clike.types import CTYPES


def converted(x: Value, source: dtype, target: dtype) -> Value:
    """Convert a value of dtype ``source`` to a value of dtype ``target``.

    Floats are truncated towards 0. Values out of range give the same result as on the reference device. Complex numbers
    lose their imaginary part, except when converted to bool.
    """
    result = value_type(target)
    if source.category == COMPLEX:
        if target.category == COMPLEX:
            part = value_type(target.to_real())
            return pair(cast(part, x.real), cast(part, x.imag))
        if target.category == BOOL:
            return (x.real != 0) | (x.imag != 0)
        return converted(x.real, source.to_real(), target)
    if target.category == COMPLEX:
        return pair(converted(x, source, target.to_real()), 0)
    if target.category == BOOL:
        return x != 0
    if source.category != FLOATING:
        return cast(result, x)
    if target.category == FLOATING:
        return call("round_to_odd_f32", x) if (source, target) == (float64, float16) else cast(result, x)
    if source is float16 and target is uint32:  # the reference converts to 64 bits and keeps the lower half
        return cast(result, call("i64_of", x))
    through = result if target.itemsize >= 4 else "i32"
    return cast(result, call(f"{through}_of", x))


LIMIT = 2.0**128 - 2.0**103
"""The smallest number that rounds to infinity in float32."""


def scalar_types(d: dtype) -> tuple[str, ...]:
    """Return the types of the kernel arguments for a Python number that is combined with arrays of dtype ``d``."""
    if d.category == COMPLEX:
        part = CTYPES[d.to_real()].value
        return (part, part)
    if d.category == FLOATING:
        return (CTYPES[d].value,)
    return (("i" if d.is_signed else "u") + ("64" if d.itemsize == 8 else "32"),)


def scalar(d: dtype, first: int, rounded: bool = False) -> Value:
    """Return the number as a value; ``first`` is the index of its first argument among the scalars.

    With ``rounded``, a number combined with a half type is rounded to it. Comparisons need that; arithmetic is more
    accurate without.
    """
    arguments = tuple(f"s{first + i}" for i in range(len(scalar_types(d))))
    value = Number(value_type(d), arguments)
    return round_to(d, value) if rounded else value


def overflow_to_infinity(value: Any) -> float:
    """Return a number, or an infinity if it is out of range for float32. The number is not rounded."""
    number = float(value)
    if -LIMIT < number < LIMIT or number != number:
        return number
    return inf if number > 0 else -inf


def integer_converter(d: dtype) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function that wraps a Python number around to the range of an integer dtype."""
    bits = 8 * d.itemsize
    mask, sign = (1 << bits) - 1, (1 << bits >> 1) if d.is_signed else 0

    def wrap(value: Any) -> tuple[Any, ...]:
        return (((int(value) + sign) & mask) - sign,)

    return wrap


def scalar_converter(d: dtype) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function that converts a Python number to the arguments that :func:`scalar_types` describes."""
    part = overflow_to_infinity if d.to_real().itemsize <= 4 else float
    if d.category == COMPLEX:
        return lambda value: (part(value.real), part(value.imag))
    if d.category == FLOATING:
        return lambda value: (part(value),)
    if d.category == BOOL:
        return lambda value: (1 if value else 0,)
    return integer_converter(d)
