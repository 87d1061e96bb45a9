"""Comparison: which elements are equal, close or larger; the maximum and the minimum of two tensors; ``clamp``."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen.adapters import FLOATING_BITS
from candelabra._dispatch.inplace import writing
from candelabra._operators.creation.filled import new_full
from candelabra._operators.elementwise.selection import where
from candelabra._operators.inquiry import check_tensors
from candelabra._records.callables import public
from candelabra._records.promotion import boolean, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import checked_pointwise, pointwise
from candelabra.dtypes import FLOATING, category_of_scalar, get_default_dtype

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


# -- equal and close ------------------------------------------------------------------------------------------------
def _check_close(input: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> None:
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.title} did not match {other.dtype.title}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")


@operator(checked_pointwise(_check_close), promote=unpromoted, result=boolean, inplace=False, out=False)
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """``|input - other| <= atol + rtol * |other|``, element by element; equal infinities are close.

    Integers are compared in the default floating dtype. Raises ``RuntimeError`` if the dtypes differ or a tolerance is
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
    """Return whether :func:`isclose` holds for every element."""
    return bool(isclose(input, other, rtol, atol, equal_nan).all().item())


@public
def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape and equal elements; NaN equals nothing."""
    check_tensors("equal", input=input, other=other)
    return input.shape == other.shape and bool((input == other).all().item())


# -- maximum and minimum of two tensors -----------------------------------------------------------------------------
@operator(pointwise, accepts="real")
def maximum(input: Tensor, other: Tensor) -> Tensor:
    """Return the larger of the two elements; NaN if either is NaN."""
    ...


def _halved_at_ties(g: Tensor, chosen: Tensor, ties: Tensor) -> Tensor:
    return where(ties, g / 2, where(chosen, g, 0))


maximum.vjp(
    input=lambda g, input, other: _halved_at_ties(g, input > other, input == other),
    other=lambda g, input, other: _halved_at_ties(g, other > input, input == other),
)


@operator(pointwise, accepts="real")
def minimum(input: Tensor, other: Tensor) -> Tensor:
    """Return the smaller of the two elements; NaN if either is NaN."""
    ...


minimum.vjp(
    input=lambda g, input, other: _halved_at_ties(g, input < other, input == other),
    other=lambda g, input, other: _halved_at_ties(g, other < input, input == other),
)


@operator(pointwise, accepts="real", inplace=False)
def fmax(input: Tensor, other: Tensor) -> Tensor:
    """Return the larger of the two elements, ignoring NaN. If they are equal, ``input`` gets the gradient."""
    return where((input >= other) | other.isnan(), input, other)


@operator(pointwise, accepts="real", inplace=False)
def fmin(input: Tensor, other: Tensor) -> Tensor:
    """Return the smaller of the two elements, ignoring NaN. If they are equal, ``input`` gets the gradient."""
    return where((input <= other) | other.isnan(), input, other)


fmax.vjp(
    input=lambda g, input, other: where((input >= other) | other.isnan(), g, 0),
    other=lambda g, input, other: where((input >= other) | other.isnan(), 0, g),
)
fmin.vjp(
    input=lambda g, input, other: where((input <= other) | other.isnan(), g, 0),
    other=lambda g, input, other: where((input <= other) | other.isnan(), 0, g),
)


# -- limits ------------------------------------------------------------------------------------------------------------
def _as_tensor(bound: Any, like: Tensor) -> Tensor:
    return bound if hasattr(bound, "_payload") else new_full(like, (), bound)


@operator(pointwise, accepts="real")
def clamp_min(input: Tensor, min: Tensor | Number) -> Tensor:
    """``max(input, min)``; NaN is propagated."""
    return maximum(input, _as_tensor(min, input))


clamp_min.vjp(
    input=lambda g, input, min: where(input >= min, g, 0),
    min=lambda g, input, min: where(input < min, g, 0),
)


@operator(pointwise, accepts="real")
def clamp_max(input: Tensor, max: Tensor | Number) -> Tensor:
    """``min(input, max)``; NaN is propagated."""
    return minimum(input, _as_tensor(max, input))


clamp_max.vjp(
    input=lambda g, input, max: where(input <= max, g, 0),
    max=lambda g, input, max: where(input > max, g, 0),
)


def _check_bounds(input: Any, min: Any, max: Any) -> None:
    if min is None and max is None:
        raise RuntimeError("clamp: At least one of 'min' or 'max' must not be None")


@operator(checked_pointwise(_check_bounds), accepts="real", aliases=("clip",))
def clamp(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """Return ``input`` limited to [min, max]; either may be a tensor, a number or None. NaN is propagated.

    If ``min`` exceeds ``max``, the result is ``max``. A floating bound promotes integers to a floating dtype.
    """
    if min is None:
        _check_bounds(input, min, max)
        return clamp_max.function(input, max)
    limited = clamp_min.function(input, min)
    return limited if max is None else clamp_max.function(limited, max)


@clamp.in_place
def _clamp_in_place(input: Tensor, min: Any, max: Any) -> Tensor:
    if min is None:
        _check_bounds(input, min, max)
        return clamp_max.form("inplace")(input, max)
    if max is None:
        return clamp_min.form("inplace")(input, min)
    floats = input._keys & FLOATING_BITS and type(max) in (float, int)
    if not floats and (hasattr(max, "_payload") or category_of_scalar(max) > input.dtype.category):
        return writing(clamp)(input, min, max)  # writes only if both bounds are valid
    return clamp_max.form("inplace")(clamp_min.form("inplace")(input, min), max)
