"""The functions that build expressions: calls, casts, selection, and refusals."""

from __future__ import annotations

from candelabra.dtypes import dtype

from candelabra_clike.device_errors import REASONS
from candelabra_clike.language.types import COMPLEX, FLOATS, INTEGERS, holds
from candelabra_clike.language.values import (
    Cast,
    FunctionCall,
    Operand,
    Operation,
    Refuse,
    Select,
    Value,
    as_value,
)
from candelabra_clike.library import FunctionSignature, signature
from candelabra_clike.types import CTYPES


def constant(type: str, number: int | float) -> Value:
    """Return a number of a type."""
    return as_value(number, type, "constant")


def call(name: str, *arguments: Operand) -> Value:
    """Return a call of a library function.

    ``exp`` stands for ``exp_f32`` if the first argument that is a value has type ``f32``; narrow integers are promoted.
    Raises ``TypeError`` if the library has no such function, or if the arguments are not those of its definition.
    """
    full, known = name, signature(name)
    if known is None:
        first = next((a for a in arguments if isinstance(a, Value)), None)
        if first is not None:
            full = f"{name}_{_suffix(first.type)}"
            known = signature(full)
    if known is None:
        raise TypeError(f"the library has no function {full!r}")
    return FunctionCall(known.result, full, tuple(_passed(full, known, arguments)))


def _suffix(type: str) -> str:
    """Return the suffix of the functions that take a type. There are none for integers of less than 32 bits."""
    return f"{type[0].replace('b', 'u')}{max(32, INTEGERS[type])}" if type in INTEGERS else type


def _passed(name: str, known: FunctionSignature, arguments: tuple[Operand, ...]) -> list[Value]:
    expected = f"{name}({', '.join(known.parameters)})"
    if len(arguments) != len(known.parameters):
        raise TypeError(f"{expected} was called with {len(arguments)} arguments")
    values = [as_value(a, type, expected) for a, type in zip(arguments, known.parameters)]
    for value, type in zip(values, known.parameters):
        if not holds(type, value.type):
            raise TypeError(f"{expected} was called with ({', '.join(v.type for v in values)})")
    return values


def cast(type: str, x: Value) -> Value:
    """Convert a real value by C's rules. Raises ``TypeError`` for a complex number of another type."""
    if x.type == type:
        return x
    if x.type in COMPLEX or type in COMPLEX:
        raise TypeError(f"cast from {x.type} to {type}: complex numbers are made by pair()")
    return Cast(type, x)


def select(condition: Value, chosen: Operand, other: Operand) -> Value:
    """Return ``chosen`` where an integer or a bool is not 0, ``other`` elsewhere."""
    return _select(condition, chosen, other, rare=False)


def and_then(first: Value, *others: Value) -> Value:
    """Return whether all conditions hold. A condition is computed only if those before it hold, so that it may read an
    element that exists only then. Without that, ``&`` of bools is the better choice, since it is no branch.
    """
    return _logical("&&", first, others)


def or_else(first: Value, *others: Value) -> Value:
    """Return whether one of the conditions holds. A condition is computed only if none before it holds."""
    return _logical("||", first, others)


def _logical(sign: str, first: Value, others: tuple[Value, ...]) -> Value:
    for other in others:
        if first.type != "bool" or other.type != "bool":
            raise TypeError(f"{sign!r} of {first.type} and {other.type}: it needs two bools")
        first = Operation("bool", sign, (first, other))
    return first


def rare(condition: Value, costly: Operand, usual: Operand) -> Value:
    """Return ``costly``, which equals ``usual`` wherever the condition is not true, which it seldom is.

    A loop on a CPU first looks whether the condition is true anywhere, and has ``usual`` alone where it is not. A
    choice between the two for each element would be a branch, with which no loop is vectorised.
    """
    return _select(condition, costly, usual, rare=True)


def _select(condition: Value, chosen: Operand, other: Operand, rare: bool) -> Value:
    if condition.type not in INTEGERS:
        raise TypeError(f"a condition of type {condition.type}: compare it with a number")
    typed = chosen if isinstance(chosen, Value) else other
    if not isinstance(typed, Value):
        raise TypeError(f"a choice of {chosen!r} and {other!r}: at least one needs a type, see constant()")
    first, second = (as_value(x, typed.type, "a choice") for x in (chosen, other))
    if first.type != second.type:
        raise TypeError(f"a choice of {first.type} and {second.type}: cast one of them")
    return Select(first.type, condition, first, second, rare)


def refuse(condition: Value, reason: str, value: Value) -> Value:
    """Return ``value``; where the condition is true, the kernel reports the error of a reason of
    :data:`candelabra_clike.device_errors.REASONS`. Raises ``TypeError`` for any other reason.
    """
    if reason not in REASONS:
        raise TypeError(f"the reason {reason!r} of a refusal is none of {', '.join(REASONS)}")
    return Refuse(value.type, condition, reason, value)


def pair(real: Operand, imag: Operand) -> Value:
    """Return a complex number of two floats."""
    typed = real if isinstance(real, Value) else imag
    if not isinstance(typed, Value) or typed.type not in FLOATS:
        raise TypeError("the parts of a complex number are floats of one type")
    parts = tuple(as_value(x, typed.type, "a complex number") for x in (real, imag))
    if parts[0].type != parts[1].type:
        raise TypeError(f"a complex number of {parts[0].type} and {parts[1].type}: cast one of them")
    type = f"c{2 * int(typed.type[1:])}"
    return FunctionCall(type, type.upper(), parts)


def sqrt(x: Value) -> Value:
    """Return the square root: an instruction for floats, a library function for complex numbers."""
    return FunctionCall(x.type, f"SQRT_{x.type.upper()}", (x,)) if x.type in FLOATS else call("sqrt", x)


def shuffle(x: Value, lane: Value) -> Value:
    """Return the value of another lane of the warp, on devices that have one."""
    if lane.type != "u32":
        raise TypeError(f"the lane of a shuffle of type {lane.type}: it needs u32")
    return FunctionCall(x.type, "SHUFFLE", (x, lane))


def multiply_high(x: Value, y: Value) -> Value:
    """Return the upper 64 bits of the product of two numbers of type ``u64``."""
    if (x.type, y.type) != ("u64", "u64"):
        raise TypeError(f"the upper half of a product of {x.type} and {y.type}: it needs two u64")
    return FunctionCall("u64", "MULTIPLY_HIGH", (x, y))


def bits(x: Value) -> Value:
    """Return the bits of a float as an unsigned integer."""
    if x.type not in FLOATS:
        raise TypeError(f"the bits of {x.type}: only floats have them")
    type = f"u{x.type[1:]}"
    return FunctionCall(type, f"BITS_{type.upper()}", (x,))


def round_to(d: dtype, x: Value) -> Value:
    """Round a value to the precision of a dtype in memory. Half types have less than their values."""
    converts = CTYPES[d].converts
    if converts not in ("f16", "bf16"):
        return x
    return call(f"load_{converts}", call(f"store_{converts}", x))
