"""Element by element, on what floating-point numbers are made of: sign, fraction, exponent, NaN, infinities."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING, NamedTuple
from candelabra._operators.primitives.arithmetic import where
from candelabra._operators.primitives.creation import filled, zeroed
from candelabra._operators.shapes.views import view_as_complex, view_as_real
from candelabra._records.promotion import boolean, same, to_float, unpromoted
from candelabra._records.record import operator
from candelabra._records.rules import by, pointwise, shape_of
from candelabra.dtypes import INTEGER, dtype, finfo, int32

if TYPE_CHECKING:
    from candelabra.typing import Number, Tensor


# -- sign and magnitude -----------------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, accepts="real")
def copysign(input: Tensor, other: Tensor | Number) -> Tensor:
    """The magnitude of ``input`` with the sign of ``other``, of zeros and NaNs too. Integers become floating first."""
    ...


# d|x|/dx is the ratio of the two, and 0 at 0, where it has no value.
copysign.vjp(
    input=lambda g, input, out: g * where(input == 0, 0, out / input),
    other=zeroed,
)


@operator(pointwise, result=boolean, accepts="real")
def signbit(input: Tensor) -> Tensor:
    """Where the sign is set: below 0, and at -0.0."""
    ...


signbit.no_gradient("the result is bool")


@operator(pointwise, accepts="real floating")
def hypot(input: Tensor, other: Tensor) -> Tensor:
    """``sqrt(input**2 + other**2)`` without overflow on the way."""
    ...


hypot.vjp(
    input=lambda g, input, out: g * (input / out),
    other=lambda g, other, out: g * (other / out),
)


@operator(pointwise, accepts="real floating")
def nextafter(input: Tensor, other: Tensor) -> Tensor:
    """The next floating-point number after ``input`` towards ``other``."""
    ...


nextafter.vjp(input=lambda g: g, other=zeroed)  # a step on the grid of floating-point numbers is tiny


# -- the larger, the smaller, the step --------------------------------------------------------------------------------
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


@operator(pointwise, accepts="real", promote=unpromoted)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below 0, 1 above, ``values`` at 0; NaN counts as below. ``RuntimeError`` where the dtypes differ."""
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return where(input == 0, values, (input > 0).to(input.dtype))


heaviside.vjp(input=zeroed, values=lambda g, input: where(input == 0, g, 0))


# -- parts ------------------------------------------------------------------------------------------------------------
@operator(pointwise, accepts="real floating")
def frac(input: Tensor) -> Tensor:
    """What :func:`trunc` leaves: ``input - trunc(input)``, with the sign of the input."""
    return input - input.trunc()


frac.vjp(input=lambda g: g)


class Parts(NamedTuple):
    """A floating-point number taken apart."""

    mantissa: Tensor
    exponent: Tensor


def _exponent(d: dtype) -> dtype:
    return int32


@by
def _both_alike(input: Tensor) -> tuple[tuple[int, ...], ...]:
    return shape_of(input), shape_of(input)


@operator(_both_alike, accepts="real floating", result=(same, _exponent), out=True)
def frexp(input: Tensor) -> Parts:
    """The mantissa, in [0.5, 1) but for its sign, and the int32 ``exponent``: ``input = mantissa * 2**exponent``."""
    ...


frexp.vjp(input=lambda g_mantissa, exponent: g_mantissa * (-exponent).to(g_mantissa.dtype).exp2())


@operator(pointwise, promote=to_float)
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """``input * 2**other``. Integers become the default floating dtype."""
    return input * (2.0**other)


# -- NaN and the infinities -------------------------------------------------------------------------------------------
@operator(pointwise)
def nan_to_num(
    input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """NaN as ``nan`` (0), and the infinities as ``posinf`` and ``neginf`` (the largest and least finite numbers).

    Of complex numbers each part by itself.
    """
    if input.is_complex():
        return view_as_complex(nan_to_num(view_as_real(input), nan, posinf, neginf))
    if input.dtype.category <= INTEGER:
        return input.clone()
    limits = finfo(input.dtype)
    out = where(input.isnan(), 0.0 if nan is None else nan, input)
    out = where(input == float("inf"), limits.max if posinf is None else posinf, out)
    return where(input == float("-inf"), limits.min if neginf is None else neginf, out)


nan_to_num.vjp(input=lambda g, input: where(input.isfinite(), g, 0))


@operator(pointwise, result=boolean, accepts="real")
def isposinf(input: Tensor) -> Tensor:
    """Where the input is infinity."""
    return input == float("inf")


@operator(pointwise, result=boolean, accepts="real")
def isneginf(input: Tensor) -> Tensor:
    """Where the input is minus infinity."""
    return input == float("-inf")


@operator(pointwise, result=boolean, out=False)
def isreal(input: Tensor) -> Tensor:
    """Where the imaginary part is 0; everywhere in real dtypes."""
    return input.imag == 0 if input.is_complex() else filled(input.isnan(), True)


for _test in (isposinf, isneginf, isreal):
    _test.no_gradient("the result is bool")
