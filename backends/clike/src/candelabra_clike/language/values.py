"""The nodes of expressions. Python's operators build them and check the types of their operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any, Final, NoReturn, TypeAlias

from candelabra_clike.language.types import COMPLEX, FLOATS, INTEGERS, SIGNED, UNSIGNED, common, promoted

ARITHMETIC: Final = ("+", "-", "*")
COMPARISONS: Final = ("<", "<=", ">", ">=", "==", "!=")
BITWISE: Final = ("&", "|", "^")
SHIFTS: Final = ("<<", ">>")
LOGICAL: Final = ("&&", "||")


@dataclass(frozen=True, eq=False)
class Value:
    """A node of a type. ``==`` and ``!=`` are comparisons of the kernel; nodes are hashed by identity."""

    type: str

    @property
    def operands(self) -> tuple[Value, ...]:
        """The nodes that this one is computed from."""
        return ()

    # -- arithmetic ---------------------------------------------------------------------------------------------------
    def __add__(self, other: Operand) -> Value:
        return binary("+", self, other)

    def __radd__(self, other: Operand) -> Value:
        return binary("+", other, self)

    def __sub__(self, other: Operand) -> Value:
        return binary("-", self, other)

    def __rsub__(self, other: Operand) -> Value:
        return binary("-", other, self)

    def __mul__(self, other: Operand) -> Value:
        return binary("*", self, other)

    def __rmul__(self, other: Operand) -> Value:
        return binary("*", other, self)

    def __truediv__(self, other: Operand) -> Value:
        return divided(self, other)

    def __rtruediv__(self, other: Operand) -> Value:
        return divided(other, self)

    def __floordiv__(self, other: Operand) -> Value:
        return quotient("/", self, other)

    def __mod__(self, other: Operand) -> Value:
        return quotient("%", self, other)

    def __neg__(self) -> Value:
        return Operation(promoted(self.type), "-", (self,))

    # -- bits of integers; of bools, logic ----------------------------------------------------------------------------
    def __and__(self, other: Operand) -> Value:
        return binary("&", self, other)

    def __or__(self, other: Operand) -> Value:
        return binary("|", self, other)

    def __xor__(self, other: Operand) -> Value:
        return binary("^", self, other)

    def __lshift__(self, other: Operand) -> Value:
        return binary("<<", self, other)

    def __rshift__(self, other: Operand) -> Value:
        return binary(">>", self, other)

    def __invert__(self) -> Value:
        if self.type == "bool":
            return self ^ 1
        if self.type not in INTEGERS:
            raise TypeError(f"'~' of {self.type}: it needs an integer or a bool")
        return Operation(promoted(self.type), "~", (self,))

    # -- comparisons --------------------------------------------------------------------------------------------------
    def __lt__(self, other: Operand) -> Value:
        return binary("<", self, other)

    def __le__(self, other: Operand) -> Value:
        return binary("<=", self, other)

    def __gt__(self, other: Operand) -> Value:
        return binary(">", self, other)

    def __ge__(self, other: Operand) -> Value:
        return binary(">=", self, other)

    def __eq__(self, other: object) -> Value:  # type: ignore[override]
        return binary("==", self, other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]
        return binary("!=", self, other)

    __hash__ = object.__hash__

    def __bool__(self) -> NoReturn:
        raise TypeError("a value of a kernel is neither true nor false while the kernel is built: use select()")

    # -- complex numbers ----------------------------------------------------------------------------------------------
    @property
    def real(self) -> Value:
        """The real part."""
        return part(self, "x")

    @property
    def imag(self) -> Value:
        """The imaginary part."""
        return part(self, "y")

    def walk(self) -> Iterator[Value]:
        """Yield this node and all that it is computed from."""
        left = [self]
        while left:
            node = left.pop()
            yield node
            left += node.operands[::-1]


Operand: TypeAlias = Value | int | float
"""A value, or a number that takes the type of the other operand."""


@dataclass(frozen=True, eq=False)
class Variable(Value):
    """A variable or a constant of C, by name: an element that was loaded, or the result of a step."""

    name: str


@dataclass(frozen=True, eq=False)
class Element(Value):
    """The element of an array ``at`` an index per dim, as a value: ``converts`` is that of the array's
    :class:`~candelabra_clike.types.CType`.
    """

    array: str
    at: tuple[Value, ...]
    converts: str = ""

    @property
    def operands(self) -> tuple[Value, ...]:
        return self.at


@dataclass(frozen=True, eq=False)
class VectorElement(Value):
    """Adjacent elements of an array from ``at`` on, as a vector with a number of lanes, see
    :mod:`candelabra_clike.language.simd`.
    """

    array: str
    at: Value
    private: bool
    lanes: int

    @property
    def operands(self) -> tuple[Value, ...]:
        return (self.at,)


@dataclass(frozen=True, eq=False)
class Address(Value):
    """The address of element ``at`` of an array, as a number."""

    array: str
    at: Value

    @property
    def operands(self) -> tuple[Value, ...]:
        return (self.at,)


@dataclass(frozen=True, eq=False)
class Number(Value):
    """A Python number that the kernel takes as an argument. ``arguments`` are the names: two for a complex number."""

    arguments: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Constant(Value):
    """A number in the text of the kernel."""

    number: int | float


@dataclass(frozen=True, eq=False)
class Operation(Value):
    """An operator of C with one or two operands."""

    sign: str
    of: tuple[Value, ...]

    @property
    def operands(self) -> tuple[Value, ...]:
        return self.of


@dataclass(frozen=True, eq=False)
class FunctionCall(Value):
    """A call of a library function, or of a word of the dialect such as ``SQRT_F32``."""

    function: str
    arguments: tuple[Value, ...]

    @property
    def operands(self) -> tuple[Value, ...]:
        return self.arguments


@dataclass(frozen=True, eq=False)
class Cast(Value):
    """A conversion by C's rules."""

    of: Value

    @property
    def operands(self) -> tuple[Value, ...]:
        return (self.of,)


@dataclass(frozen=True, eq=False)
class ComplexPart(Value):
    """The real (``x``) or imaginary part (``y``) of a complex number."""

    of: Value
    name: str

    @property
    def operands(self) -> tuple[Value, ...]:
        return (self.of,)


@dataclass(frozen=True, eq=False)
class Select(Value):
    """One of two values. With ``rare``, the first one is right everywhere, costs more and is seldom needed, see
    :mod:`candelabra_clike.templates.elementwise.loops`.
    """

    condition: Value
    chosen: Value
    other: Value
    rare: bool = False

    @property
    def operands(self) -> tuple[Value, ...]:
        return (self.condition, self.chosen, self.other)


@dataclass(frozen=True, eq=False)
class Refuse(Value):
    """A value, with a condition under which the kernel reports an error for a reason."""

    condition: Value
    reason: str
    value: Value

    @property
    def operands(self) -> tuple[Value, ...]:
        return (self.condition, self.value)


def replaced(value: Value, by: Mapping[Value, Value]) -> Value:
    """Return a value with some of its nodes replaced by others of the same types."""
    if value in by:
        return by[value]
    changes: dict[str, Any] = {}
    for field in fields(value):
        part = getattr(value, field.name)
        if isinstance(part, Value):
            changes[field.name] = replaced(part, by)
        elif isinstance(part, tuple) and all(isinstance(each, Value) for each in part):
            changes[field.name] = tuple([replaced(each, by) for each in part])
    return replace(value, **changes) if changes else value


def reasons_in(*values: Value) -> tuple[str, ...]:
    """Return the reasons for which expressions refuse values, see :mod:`candelabra_clike.device_errors`."""
    return tuple(dict.fromkeys(node.reason for v in values for node in v.walk() if isinstance(node, Refuse)))


def binary(sign: str, first: object, second: object) -> Value:
    """Return an operation of two operands. Raises ``TypeError`` if C would not compute it as it reads."""
    a, b = as_pair(first, second, f"{sign!r}")
    if sign in SHIFTS:
        if a.type not in INTEGERS or b.type not in INTEGERS:
            raise TypeError(f"{sign!r} of {a.type} and {b.type}: it needs integers")
        if isinstance(a, Constant):  # which takes the type of the other operand in all operations but shifts
            a = Cast(a.type, a)
        return Operation(promoted(a.type), sign, (a, b))
    if sign in BITWISE:
        if a.type != b.type or a.type not in INTEGERS:
            raise TypeError(f"{sign!r} of {a.type} and {b.type}: it needs two integers of one type, or two bools")
        return Operation(a.type, sign, (a, b))
    type = common(a.type, b.type)
    if type is None:
        raise TypeError(f"{sign!r} of {a.type} and {b.type}: cast one of them")
    if type in COMPLEX and sign not in ("+", "-"):
        raise TypeError(f"{sign!r} of {type}: complex numbers have functions of the library, such as product()")
    return Operation("bool" if sign in COMPARISONS else type, sign, (a, b))


def divided(first: Operand, second: Operand) -> Value:
    """Return a quotient of floats, correctly rounded where the device can."""
    a, b = as_pair(first, second, "'/'")
    if a.type != b.type or a.type not in FLOATS:
        raise TypeError(f"'/' of {a.type} and {b.type}: it needs two floats of one type; see divide() of the library")
    return FunctionCall(a.type, f"DIVIDE_{a.type.upper()}", (a, b))


def quotient(sign: str, first: Value, second: Operand) -> Value:
    """Return a quotient or remainder of unsigned integers, the only ones that C and Python divide alike."""
    b = as_value(second, first.type, f"{sign!r}")
    type = common(first.type, b.type)
    if type is None or first.type not in UNSIGNED or b.type not in UNSIGNED or type not in UNSIGNED:
        raise TypeError(f"{sign!r} of {first.type} and {b.type}: it needs unsigned integers of 32 bits or more")
    return Operation(type, sign, (first, b))


def part(value: Value, name: str) -> Value:
    """Return a part of a complex number."""
    if value.type not in COMPLEX:
        raise TypeError(f"a part of {value.type}: only complex numbers have one")
    return ComplexPart(COMPLEX[value.type], value, name)


def as_pair(first: object, second: object, context: str) -> tuple[Value, Value]:
    """Return two operands as values. At least one of them is a value."""
    if isinstance(first, Value):
        return first, as_value(second, first.type, context)
    assert isinstance(second, Value)
    return as_value(first, second.type, context), second


def as_value(x: object, type: str, context: str) -> Value:
    """Return a value, or a number as a constant of ``type``. Raises ``TypeError`` for a number that it has not."""
    if isinstance(x, Value):
        return x
    if not isinstance(x, int | float):
        raise TypeError(f"{context}: expected a value or a number, got {x!r}")
    if type in INTEGERS:
        bits = INTEGERS[type]
        low, high = (0, 1) if type == "bool" else (0, (1 << bits) - 1)
        if type in SIGNED:
            low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        if isinstance(x, float) or not low <= x <= high:
            raise TypeError(f"{context}: {x!r} is no number of type {type}")
    elif type in COMPLEX and not isfinite(x):
        raise TypeError(f"{context}: {x!r} has no constant of type {type}")
    return Constant(type, x)
