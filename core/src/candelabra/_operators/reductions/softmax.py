"""Softmax and its logarithm along a dim: composites with explicit derivatives.

The derivatives are composites, too, named ``…_backward``. They have no derivative formula, so they run above autograd:
a second derivative records their operators, and a backend's override is used for the first derivative.
"""

from __future__ import annotations

from candelabra._annotations import TYPE_CHECKING
from candelabra._layout import broadcast_shapes
from candelabra._records.autocasting import Autocast
from candelabra._records.overloads import overloads
from candelabra._records.record import operator
from candelabra._records.rules import by, like_input, shape_of

if TYPE_CHECKING:
    from candelabra.typing import Dim, DType, Tensor

FLOATS = "real floating"
_both = by(lambda grad, output, dim: broadcast_shapes(shape_of(grad), shape_of(output)))


@operator(like_input, accepts=FLOATS, public=False, autocast=Autocast("float32"))
def softmax(input: Tensor, dim: Dim) -> Tensor:
    """``exp(input) / sum(exp(input))`` along ``dim``, shifted by the maximum against overflow."""
    if not input.numel():
        return input.clone()
    powers = (input - input.amax(dim, True)).exp()
    return powers / powers.sum(dim, True)


@operator(_both, accepts=FLOATS, public=False, method=False, out=False)
def softmax_backward(grad: Tensor, output: Tensor, dim: Dim) -> Tensor:
    """Return the gradient of softmax's input: ``output * (grad - sum(grad * output))``."""
    weighted = grad * output
    return weighted - output * weighted.sum(dim, True)


softmax.vjp(input=lambda g, out, dim: softmax_backward.canonical(g, out, dim))
softmax.jvp(lambda t_input, out, dim: softmax_backward.canonical(t_input, out, dim))  # the Jacobian is symmetric


@operator(like_input, accepts=FLOATS, public=False, autocast=Autocast("float32"))
def log_softmax(input: Tensor, dim: Dim) -> Tensor:
    """``log(softmax(input))`` along ``dim``, computed without the softmax, which would round small values to 0."""
    if not input.numel():
        return input.clone()
    shifted = input - input.amax(dim, True)
    return shifted - shifted.exp().sum(dim, True).log()


@operator(_both, accepts=FLOATS, public=False, method=False, out=False)
def log_softmax_backward(grad: Tensor, output: Tensor, dim: Dim) -> Tensor:
    """Return the gradient of log_softmax's input: ``grad - exp(output) * sum(grad)``."""
    return grad - output.exp() * grad.sum(dim, True)


log_softmax.vjp(input=lambda g, out, dim: log_softmax_backward.canonical(g, out, dim))


@operator(_both, accepts=FLOATS, public=False, method=False, out=False)
def log_softmax_along(tangent: Tensor, output: Tensor, dim: Dim) -> Tensor:
    """Return the derivative of :func:`log_softmax` along a tangent, ``tangent - sum(exp(output) * tangent)``."""
    return tangent - (output.exp() * tangent).sum(dim, True)


log_softmax.jvp(lambda t_input, out, dim: log_softmax_along.canonical(t_input, out, dim))


@operator(like_input, public=False)
def softmax_in_dtype(input: Tensor, dim: Dim, dtype: DType | None = None) -> Tensor:
    """Cast the input to ``dtype`` first."""
    return softmax(input if dtype is None else input.to(dtype), dim)


@operator(like_input, public=False)
def log_softmax_in_dtype(input: Tensor, dim: Dim, dtype: DType | None = None) -> Tensor:
    """Cast the input to ``dtype`` first."""
    return log_softmax(input if dtype is None else input.to(dtype), dim)


softmax_overloads = overloads("softmax", softmax, softmax_in_dtype, aliases=("special.softmax",))
log_softmax_overloads = overloads("log_softmax", log_softmax, log_softmax_in_dtype, aliases=("special.log_softmax",))
