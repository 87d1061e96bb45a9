"""Trigonometric and hyperbolic functions and their inverses, ``sinc``, and angles in degrees."""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.elementwise.complex import conj_of
from candelabra._operators.elementwise.powers import rsqrt
from candelabra._operators.elementwise.selection import where
from candelabra._records.autocasting import Autocast
from candelabra._records.derivative import applied
from candelabra._records.promotion import to_float
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@operator(pointwise, promote=to_float)
def sin(input: Tensor) -> Tensor:
    """Return the sine of angles in radians."""
    ...


sin.vjp(input=lambda g, input: g * cos(input).conj())


@operator(pointwise, promote=to_float)
def cos(input: Tensor) -> Tensor:
    """Return the cosine of angles in radians."""
    ...


cos.vjp(input=lambda g, input: g * -sin(input).conj())


@operator(pointwise, promote=to_float, autocast=Autocast("float32"))
def tan(input: Tensor) -> Tensor:
    """Return the tangent of angles in radians."""
    ...


tan.vjp(input=lambda g, out: g * (out * out + 1).conj())


@operator(pointwise, promote=to_float, aliases=("arcsin",), autocast=Autocast("float32"))
def asin(input: Tensor) -> Tensor:
    """Return the arc sine, in radians; NaN outside [-1, 1]."""
    ...


asin.vjp(input=lambda g, input: g * rsqrt(1 - input * input).conj())


@operator(pointwise, promote=to_float, aliases=("arccos",), autocast=Autocast("float32"))
def acos(input: Tensor) -> Tensor:
    """Return the arc cosine, in radians; NaN outside [-1, 1]."""
    ...


acos.vjp(input=lambda g, input: g * -rsqrt(1 - input * input).conj())


@operator(pointwise, promote=to_float, aliases=("arctan",))
def atan(input: Tensor) -> Tensor:
    """Return the arc tangent, in radians."""
    ...


atan.vjp(input=lambda g, input: g / (input * input + 1).conj())


@operator(pointwise, accepts="real", promote=to_float, aliases=("arctan2",), autocast=Autocast("widest"))
def atan2(input: Tensor, other: Tensor) -> Tensor:
    """Return the angle of the point (other, input) in (-pi, pi]."""
    ...


atan2.vjp(
    input=lambda g, input, other: g * other / (input * input + other * other),
    other=lambda g, input, other: g * -input / (input * input + other * other),
)


# -- hyperbolic --------------------------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, autocast=Autocast("float32"))
def sinh(input: Tensor) -> Tensor:
    """Return the hyperbolic sine."""
    ...


sinh.vjp(input=lambda g, input: g * cosh(input).conj())


@operator(pointwise, promote=to_float, autocast=Autocast("float32"))
def cosh(input: Tensor) -> Tensor:
    """Return the hyperbolic cosine."""
    ...


cosh.vjp(input=lambda g, input: g * sinh(input).conj())


@operator(pointwise, promote=to_float)
def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    ...


@operator(pointwise, accepts="floating", public=False, inplace=False)
def tanh_backward(grad: Tensor, output: Tensor) -> Tensor:
    """Return the gradient of tanh's input: ``grad * conj(1 - output**2)``."""
    return grad * conj_of(1 - output * output)


tanh_backward.vjp(
    grad=lambda g, output: g * (1 - output * output),
    output=lambda g, grad, output: conj_of(g) * grad * conj_of(output) * -2,
)
tanh.vjp(input=applied(tanh_backward, "g", "out"))


@operator(pointwise, promote=to_float, aliases=("arcsinh",))
def asinh(input: Tensor) -> Tensor:
    """Return the inverse hyperbolic sine."""
    ...


asinh.vjp(input=lambda g, input: g * rsqrt(input * input + 1).conj())


@operator(pointwise, promote=to_float, aliases=("arccosh",))
def acosh(input: Tensor) -> Tensor:
    """Return the inverse hyperbolic cosine; NaN below 1."""
    ...


acosh.vjp(input=lambda g, input: g * (rsqrt(input - 1) * rsqrt(input + 1)).conj())


@operator(pointwise, promote=to_float, aliases=("arctanh",))
def atanh(input: Tensor) -> Tensor:
    """Return the inverse hyperbolic tangent; NaN outside [-1, 1]."""
    ...


atanh.vjp(input=lambda g, input: g / (1 - input * input).conj())


# -- sin(x) / x --------------------------------------------------------------------------------------------------------
COEFFICIENTS = tuple((-1) ** k * 2 * k / math.factorial(2 * k + 1) for k in range(1, 10))
"""The coefficients of x, x**3, … in the Taylor series of the derivative of ``sin(x) / x``. For |x| < 1 the next term is
below the eps of float64."""


def sine_quotient_derivative(x: Tensor) -> Tensor:
    """Return the derivative of ``sin(x) / x``, ``(x cos(x) - sin(x)) / x**2``: minus the spherical Bessel function of
    order 1.

    For |x| < 1 the two terms cancel, and so do their derivatives; there the Taylor series is used. Source: the series
    of sine and cosine, NIST Digital Library of Mathematical Functions, 4.19.1 and 4.19.2.
    """
    near = x.abs() < 1
    small, far = x.masked_fill(near.logical_not(), 0), x.masked_fill(near, 1)
    square = small * small
    series = square * COEFFICIENTS[-1]
    for coefficient in COEFFICIENTS[-2:0:-1]:
        series = (series + coefficient) * square
    return where(near, (series + COEFFICIENTS[0]) * small, (far.cos() - far.sin() / far) / far)


@operator(pointwise, promote=to_float, aliases=("special.sinc",))
def sinc(input: Tensor) -> Tensor:
    """``sin(pi * input) / (pi * input)``: 1 at 0, exactly 0 at the other integers."""
    # With n the nearest integer, input - n is exact and sin(pi * input) = (-1)**n * sin(pi * (input - n)).
    nearest = (input.real if input.is_complex() else input).round()
    sine = ((input - nearest) * math.pi).sin() * (1 - (nearest % 2) * 2)
    zero = input == 0
    return (sine / (input * math.pi).masked_fill(zero, 1)).masked_fill(zero, 1)


@operator(pointwise, accepts="floating", public=False, method=False, out=False, inplace=False)
def sinc_backward(grad: Tensor, input: Tensor) -> Tensor:
    """Return the gradient of sinc's input, ``grad * conj((cos(pi * input) - sinc(input)) / input)``; 0 at 0."""
    return grad * conj_of(sine_quotient_derivative(input * math.pi) * math.pi)


sinc.vjp(input=lambda g, input: sinc_backward.canonical(g, input))


# -- degrees -----------------------------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, accepts="real")
def deg2rad(input: Tensor) -> Tensor:
    """Convert degrees to radians."""
    return input * (math.pi / 180)


@operator(pointwise, promote=to_float, accepts="real")
def rad2deg(input: Tensor) -> Tensor:
    """Convert radians to degrees."""
    return input * (180 / math.pi)
