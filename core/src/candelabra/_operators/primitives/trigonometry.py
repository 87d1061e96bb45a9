"""Trigonometric and hyperbolic functions and their inverses, element by element; see :mod:`pointwise`."""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._operators.primitives.pointwise import conj, rsqrt
from candelabra._records.derivative import applied
from candelabra._records.promotion import to_float
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

if TYPE_CHECKING:
    from candelabra.typing import Tensor


@operator(pointwise, promote=to_float)
def sin(input: Tensor) -> Tensor:
    """The sine, in radians."""
    ...


sin.vjp(input=lambda g, input: g * cos(input).conj())


@operator(pointwise, promote=to_float)
def cos(input: Tensor) -> Tensor:
    """The cosine, in radians."""
    ...


cos.vjp(input=lambda g, input: g * -sin(input).conj())


@operator(pointwise, promote=to_float)
def tan(input: Tensor) -> Tensor:
    """The tangent, in radians."""
    ...


tan.vjp(input=lambda g, out: g * (out * out + 1).conj())


@operator(pointwise, promote=to_float, aliases=("arcsin",))
def asin(input: Tensor) -> Tensor:
    """The arc sine, in radians; NaN outside [-1, 1]."""
    ...


asin.vjp(input=lambda g, input: g * rsqrt(1 - input * input).conj())


@operator(pointwise, promote=to_float, aliases=("arccos",))
def acos(input: Tensor) -> Tensor:
    """The arc cosine, in radians; NaN outside [-1, 1]."""
    ...


acos.vjp(input=lambda g, input: g * -rsqrt(1 - input * input).conj())


@operator(pointwise, promote=to_float, aliases=("arctan",))
def atan(input: Tensor) -> Tensor:
    """The arc tangent, in radians."""
    ...


atan.vjp(input=lambda g, input: g / (input * input + 1).conj())


@operator(pointwise, promote=to_float)
def sinh(input: Tensor) -> Tensor:
    """The hyperbolic sine."""
    ...


sinh.vjp(input=lambda g, input: g * cosh(input).conj())


@operator(pointwise, promote=to_float)
def cosh(input: Tensor) -> Tensor:
    """The hyperbolic cosine."""
    ...


cosh.vjp(input=lambda g, input: g * sinh(input).conj())


@operator(pointwise, promote=to_float)
def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    ...


@operator(pointwise, accepts="floating", public=False, inplace=False)
def tanh_backward(grad: Tensor, output: Tensor) -> Tensor:
    """``grad * (1 - output**2)``, conjugated: one kernel where a backend has it."""
    return grad * conj(1 - output * output)


tanh_backward.vjp(
    grad=lambda g, output: g * (1 - output * output),
    output=lambda g, grad, output: conj(g) * grad * conj(output) * -2,
)
tanh.vjp(input=applied(tanh_backward, "g", "out"))


@operator(pointwise, promote=to_float, aliases=("arcsinh",))
def asinh(input: Tensor) -> Tensor:
    """The inverse hyperbolic sine."""
    ...


asinh.vjp(input=lambda g, input: g * rsqrt(input * input + 1).conj())


@operator(pointwise, promote=to_float, aliases=("arccosh",))
def acosh(input: Tensor) -> Tensor:
    """The inverse hyperbolic cosine; NaN below 1."""
    ...


acosh.vjp(input=lambda g, input: g * (rsqrt(input - 1) * rsqrt(input + 1)).conj())


@operator(pointwise, promote=to_float, aliases=("arctanh",))
def atanh(input: Tensor) -> Tensor:
    """The inverse hyperbolic tangent; NaN outside [-1, 1]."""
    ...


atanh.vjp(input=lambda g, input: g / (1 - input * input).conj())
