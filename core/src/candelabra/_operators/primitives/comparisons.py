"""Element by element, two tensors or a tensor and a number: comparison, logic, bits. None has a derivative."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._records.promotion import boolean
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


@operator(pointwise, result=boolean)
def eq(input: Tensor, other: Tensor | Number) -> Tensor:
    """``input == other``, element by element."""
    ...


@operator(pointwise, result=boolean, aliases=("not_equal",))
def ne(input: Tensor, other: Tensor | Number) -> Tensor:
    """``input != other``, element by element."""
    ...


@operator(pointwise, result=boolean, accepts="real", aliases=("less",))
def lt(input: Tensor, other: Tensor | Number) -> Tensor:
    """``input < other``, element by element."""
    ...


@operator(pointwise, result=boolean, accepts="real", aliases=("less_equal",))
def le(input: Tensor, other: Tensor | Number) -> Tensor:
    """``input <= other``, element by element."""
    ...


@operator(pointwise, result=boolean, accepts="real", aliases=("greater",))
def gt(input: Tensor, other: Tensor | Number) -> Tensor:
    """``input > other``, element by element."""
    ...


@operator(pointwise, result=boolean, accepts="real", aliases=("greater_equal",))
def ge(input: Tensor, other: Tensor | Number) -> Tensor:
    """``input >= other``, element by element."""
    ...


@operator(pointwise, result=boolean)
def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Where both are nonzero."""
    ...


@operator(pointwise, result=boolean)
def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Where at least one is nonzero."""
    ...


@operator(pointwise, result=boolean)
def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Where exactly one is nonzero."""
    ...


for _test in (eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor):
    _test.no_gradient("the result is bool")


@operator(pointwise, accepts="integral")
def bitwise_and(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input & other``."""
    ...


@operator(pointwise, accepts="integral")
def bitwise_or(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input | other``."""
    ...


@operator(pointwise, accepts="integral")
def bitwise_xor(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input ^ other``."""
    ...


@operator(pointwise, accepts="integer")
def bitwise_left_shift(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input << other``; shifts by the width or more, or by less than 0, give 0."""
    ...


@operator(pointwise, accepts="integer")
def bitwise_right_shift(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input >> other``, arithmetic for signed integers; too wide a shift gives 0 or -1."""
    ...


for _bits in (bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift):
    _bits.no_gradient("integers")
