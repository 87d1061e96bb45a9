"""Activations: each is composed of other operators and has a derivative.

The derivatives that are worth a kernel of their own are composites too, named ``…_backward``. They have no derivative
and so run above autograd: their operators are recorded when a second derivative is asked for, and a backend's override
serves the ordinary backward pass.
"""

from __future__ import annotations

import math

from candelabra.library import operator, pointwise, record
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Tensor

where = record("where")

FLOATS = "real floating"
HALF_PI = math.sqrt(0.5)
TANH_SCALE = math.sqrt(2 / math.pi)
TANH_CUBIC = 0.044715


@operator(pointwise, accepts=FLOATS, public=False, method=False)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``input * Phi(input)``, Phi the normal distribution function; ``"tanh"`` is the approximation of the same name.

    Hendrycks and Gimpel, Gaussian error linear units, 2016.
    """
    if approximate == "tanh":
        inner = (input + input * input * input * TANH_CUBIC) * TANH_SCALE
        return input * 0.5 * (inner.tanh() + 1)
    return input * 0.5 * ((input * HALF_PI).erf() + 1)


@operator(pointwise, accepts=FLOATS, public=False, method=False, out=False, inplace=False)
def gelu_backward(grad: Tensor, input: Tensor, approximate: str) -> Tensor:
    """The gradient of gelu's input: ``grad * (Phi(x) + x * phi(x))``."""
    if approximate == "tanh":
        square = input * input
        t = ((input + square * input * TANH_CUBIC) * TANH_SCALE).tanh()
        slope = (1 - t * t) * (1 + square * (3 * TANH_CUBIC)) * TANH_SCALE
        return grad * (input * slope + t + 1) * 0.5
    density = (input * input * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
    return grad * (((input * HALF_PI).erf() + 1) * 0.5 + input * density)


gelu.vjp(input=lambda g, input, approximate: gelu_backward(g, input, approximate))


@operator(pointwise, accepts="floating", public=False, method=False)
def silu(input: Tensor) -> Tensor:
    """``input * sigmoid(input)``, also called swish."""
    return input / ((-input).exp() + 1)


@operator(pointwise, accepts="floating", public=False, method=False, out=False, inplace=False)
def silu_backward(grad: Tensor, input: Tensor) -> Tensor:
    """The gradient of silu's input: ``grad * conj(s * (1 + x * (1 - s)))`` with s = sigmoid(x)."""
    s = input.sigmoid()
    return grad * (s * (input * (1 - s) + 1)).conj()


silu.vjp(input=lambda g, input: silu_backward(g, input))


@operator(pointwise, accepts=FLOATS, public=False, method=False)
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``; the input itself where ``beta * input`` is above ``threshold``."""
    scaled = input * beta
    # log1p(exp(-|x|)) + max(x, 0) neither overflows nor cancels.
    smooth = ((-scaled.abs()).exp().log1p() + scaled.clamp_min(0)) / beta
    return where(scaled > threshold, input, smooth)


softplus.vjp(input=lambda g, input, beta, threshold: where(input * beta > threshold, g, g * (input * beta).sigmoid()))


@operator(pointwise, accepts=FLOATS, public=False, method=False)
def log_sigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(input))``, exact for large inputs of either sign."""
    return input.clamp_max(0) - (-input.abs()).exp().log1p()


log_sigmoid.vjp(input=lambda g, input: g * (-input).sigmoid())


@operator(pointwise, accepts=FLOATS, public=False, method=False)
def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """``input`` above 0, ``negative_slope * input`` below."""
    return where(input > 0, input, input * negative_slope)


leaky_relu.vjp(input=lambda g, input, negative_slope: where(input > 0, g, g * negative_slope))


@operator(pointwise, accepts=FLOATS, public=False, method=False)
def elu(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """``scale * input`` above 0, ``scale * alpha * (exp(input_scale * input) - 1)`` below: elu, selu, celu in one."""
    return where(input > 0, input * scale, (input * input_scale).clamp_max(0).expm1() * (alpha * scale))


def _elu_back(g: Tensor, input: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    below = (input * input_scale).clamp_max(0).exp() * (alpha * scale * input_scale)
    return g * where(input > 0, scale, below)


elu.vjp(input=_elu_back)


@operator(pointwise, accepts="real numeric", public=False, method=False)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """``input`` limited to [min_val, max_val]."""
    return input.clamp_min(min_val).clamp_max(max_val)


hardtanh.vjp(input=lambda g, input, min_val, max_val: g.masked_fill((input <= min_val) | (input >= max_val), 0))
