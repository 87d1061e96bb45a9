"""Comparison: which elements are equal, close, larger, and the larger of two."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._operators.elementwise.selection import where
from candelabra._operators.inquiry import check_tensors
from candelabra._records.callables import public
from candelabra._records.promotion import boolean, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import checked_pointwise, pointwise
from candelabra.dtypes import FLOATING, PYTHON_NAMES, get_default_dtype

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


for _comparison in (eq, ne, lt, le, gt, ge):
    _comparison.no_gradient("the result is bool")


# -- equal and close --------------------------------------------------------------------------------------------------
def _check_close(input: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> None:
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{PYTHON_NAMES[input.dtype.name]} did not match {PYTHON_NAMES[other.dtype.name]}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")


@operator(checked_pointwise(_check_close), promote=unpromoted, result=boolean, inplace=False, out=False)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """``|input - other| <= atol + rtol * |other|``, element by element; equal infinities are close.

    Integers are compared in the default floating dtype. ``RuntimeError`` where the dtypes differ or a tolerance is
    negative.
    """
    _check_close(input, other, rtol, atol, equal_nan)
    close = input == other
    if equal_nan and input.dtype.category >= FLOATING:
        close = close | ((input != input) & (other != other))
    if rtol == 0 and atol == 0:
        return close
    if input.dtype.category < FLOATING:
        input, other = input.to(get_default_dtype()), other.to(get_default_dtype())
    error = (input - other).abs()
    return close | (error.isfinite() & (error <= atol + rtol * other.abs()))


isclose.no_gradient("the result is bool")


@public
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether :func:`isclose` holds for every element."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


@public
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and equal elements; NaN equals nothing."""
    check_tensors("equal", input=input, other=other)
    return input.shape == other.shape and bool((input == other).all().item())


# -- the larger and the smaller of two --------------------------------------------------------------------------------
@operator(pointwise, accepts="real")
def maximum(input: Tensor, other: Tensor) -> Tensor:
    """The larger of the two; NaN where either is NaN."""
    ...


def _halved_at_ties(g: Tensor, chosen: Tensor, ties: Tensor) -> Tensor:
    return where(ties, g / 2, where(chosen, g, 0))


maximum.vjp(
    input=lambda g, input, other: _halved_at_ties(g, input > other, input == other),
    other=lambda g, input, other: _halved_at_ties(g, other > input, input == other),
)


@operator(pointwise, accepts="real")
def minimum(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of the two; NaN where either is NaN."""
    ...


minimum.vjp(
    input=lambda g, input, other: _halved_at_ties(g, input < other, input == other),
    other=lambda g, input, other: _halved_at_ties(g, other < input, input == other),
)


@operator(pointwise, accepts="real", inplace=False)
def fmax(input: Tensor, other: Tensor) -> Tensor:
    """The larger of the two; the number where only one is NaN. Of equal ones the first gets the gradient."""
    return where((input >= other) | other.isnan(), input, other)


@operator(pointwise, accepts="real", inplace=False)
def fmin(input: Tensor, other: Tensor) -> Tensor:
    """The smaller of the two; the number where only one is NaN. Of equal ones the first gets the gradient."""
    return where((input <= other) | other.isnan(), input, other)


fmax.vjp(
    input=lambda g, input, other: where((input >= other) | other.isnan(), g, 0),
    other=lambda g, input, other: where((input >= other) | other.isnan(), 0, g),
)
fmin.vjp(
    input=lambda g, input, other: where((input <= other) | other.isnan(), g, 0),
    other=lambda g, input, other: where((input <= other) | other.isnan(), 0, g),
)
