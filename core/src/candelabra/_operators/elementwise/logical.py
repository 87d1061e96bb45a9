"""Logical and bitwise operators, and shifts."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._records.promotion import boolean
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


@operator(pointwise, result=boolean)
def logical_and(input: Tensor, other: Tensor) -> Tensor:
    """Return True where both elements are nonzero."""
    ...


@operator(pointwise, result=boolean)
def logical_or(input: Tensor, other: Tensor) -> Tensor:
    """Return True where at least one element is nonzero."""
    ...


@operator(pointwise, result=boolean)
def logical_xor(input: Tensor, other: Tensor) -> Tensor:
    """Return True where exactly one element is nonzero."""
    ...


@operator(pointwise, result=boolean)
def logical_not(input: Tensor) -> Tensor:
    """Return True where the input is zero (or False)."""
    ...


for _logical in (logical_and, logical_or, logical_xor, logical_not):
    _logical.no_gradient("the result is bool")


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
    """``input << other``; a shift by at least the width, or by a negative number, gives 0."""
    ...


@operator(pointwise, accepts="integer")
def bitwise_right_shift(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """``input >> other``, an arithmetic shift for signed integers.

    A shift by at least the width, or by a negative number, gives -1 for a negative ``input`` and 0 for others.
    """
    ...


@operator(pointwise, accepts="integral")
def bitwise_not(input: Tensor) -> Tensor:
    """Return the bitwise complement; for bools the negation."""
    ...


for _bitwise in (bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift, bitwise_not):
    _bitwise.no_gradient("integers")
