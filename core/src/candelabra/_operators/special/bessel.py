"""Bessel functions, including modified and spherical ones, and the Airy function.

Source of the definitions and derivatives: NIST Digital Library of Mathematical Functions, chapters 9 and 10. PyTorch
differentiates i0, i0e, i1 and i1e only.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.elementwise.trigonometric import sine_quotient_derivative
from candelabra._records.promotion import to_float
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

if TYPE_CHECKING:
    from candelabra.typing import Tensor


def divided(numerator: Tensor, x: Tensor, at_zero: float) -> Tensor:
    """Return ``numerator / x``, or the limit ``at_zero`` where x is 0."""
    zero = x == 0
    return (numerator / x.masked_fill(zero, 1)).masked_fill(zero, at_zero)


# -- first and second kind --------------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_bessel_j0(input: Tensor) -> Tensor:
    """Return the Bessel function of the first kind of order 0."""
    ...


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_bessel_j1(input: Tensor) -> Tensor:
    """Return the Bessel function of the first kind of order 1."""
    ...


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_bessel_y0(input: Tensor) -> Tensor:
    """Return the Bessel function of the second kind of order 0: -inf at 0, NaN below."""
    ...


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_bessel_y1(input: Tensor) -> Tensor:
    """Return the Bessel function of the second kind of order 1: -inf at 0, NaN below."""
    ...


special_bessel_j0.vjp(input=lambda g, input: g * -special_bessel_j1(input))
special_bessel_j1.vjp(input=lambda g, input, out: g * (special_bessel_j0(input) - divided(out, input, 0.5)))
special_bessel_y0.vjp(input=lambda g, input: g * -special_bessel_y1(input))
special_bessel_y1.vjp(input=lambda g, input, out: g * (special_bessel_y0(input) - out / input))


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_spherical_bessel_j0(input: Tensor) -> Tensor:
    """Return the spherical Bessel function of order 0: ``sin(input) / input``, 1 at 0, 0 at the infinities."""
    return divided(input.sin(), input, 1.0).masked_fill(input.isinf(), 0.0)


special_spherical_bessel_j0.vjp(
    input=lambda g, input: g * sine_quotient_derivative(input).masked_fill(input.isinf(), 0.0),
)


# -- modified ---------------------------------------------------------------------------------------------------------
@operator(
    pointwise, promote=to_float, accepts="real", aliases=("special.i0", "special.modified_bessel_i0"),
)  # fmt: skip
def i0(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0."""
    ...


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_i0e(input: Tensor) -> Tensor:
    """``exp(-abs(input)) * i0(input)`` without overflow."""
    ...


@operator(
    pointwise, promote=to_float, accepts="real", namespace="special", aliases=("special.modified_bessel_i1",),
)  # fmt: skip
def special_i1(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the first kind of order 1."""
    ...


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_i1e(input: Tensor) -> Tensor:
    """``exp(-abs(input)) * i1(input)`` without overflow."""
    ...


i0.vjp(input=lambda g, input: g * special_i1(input))
special_i0e.vjp(input=lambda g, input, out: g * (special_i1e(input) - input.sign() * out))
special_i1.vjp(input=lambda g, input, out: g * (i0(input) - divided(out, input, 0.5)))
special_i1e.vjp(
    input=lambda g, input, out: g * (special_i0e(input) - input.sign() * out - divided(out, input, 0.5)),
)


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_modified_bessel_k0(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the second kind of order 0: infinity at 0, NaN below."""
    ...


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_modified_bessel_k1(input: Tensor) -> Tensor:
    """Return the modified Bessel function of the second kind of order 1: infinity at 0, NaN below."""
    ...


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_scaled_modified_bessel_k0(input: Tensor) -> Tensor:
    """``exp(input) * modified_bessel_k0(input)`` without underflow."""
    ...


@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_scaled_modified_bessel_k1(input: Tensor) -> Tensor:
    """``exp(input) * modified_bessel_k1(input)`` without underflow."""
    ...


special_modified_bessel_k0.vjp(input=lambda g, input: g * -special_modified_bessel_k1(input))
special_modified_bessel_k1.vjp(
    input=lambda g, input, out: g * (-special_modified_bessel_k0(input) - out / input),
)
special_scaled_modified_bessel_k0.vjp(
    input=lambda g, input, out: g * (out - special_scaled_modified_bessel_k1(input)),
)
special_scaled_modified_bessel_k1.vjp(
    input=lambda g, input, out: g * (out - special_scaled_modified_bessel_k0(input) - out / input),
)


# -- Airy -------------------------------------------------------------------------------------------------------------
@operator(pointwise, promote=to_float, accepts="real", namespace="special")
def special_airy_ai(input: Tensor) -> Tensor:
    """Return the Airy function Ai: the solution of ``y'' = input * y`` that tends to 0 for large inputs."""
    ...


@operator(pointwise, promote=to_float, accepts="real", public=False, method=False, out=False, inplace=False)
def special_airy_ai_slope(input: Tensor) -> Tensor:
    """Return the derivative of the Airy function Ai."""
    ...


special_airy_ai.vjp(input=lambda g, input: g * special_airy_ai_slope(input))
special_airy_ai_slope.vjp(input=lambda g, input: g * input * special_airy_ai(input))
