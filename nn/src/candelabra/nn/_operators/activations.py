"""Elementwise activation functions.

The first group has kernels and derivatives of its own. The derivatives that have kernels are composites too, named
``…_backward``. They have no derivative and so run above autograd: their operators are recorded for a second derivative,
and a backend's kernel serves the ordinary backward pass. The second group consists of composites without a derivative:
they check their arguments, and are composed of the first group and of other operators.

``inplace="argument"``: as in PyTorch, ``inplace=True`` writes the result into the input.
"""

from __future__ import annotations

import math

from candelabra.dtypes import float32
from candelabra.library import Autocast, by, operator, overloads, pointwise, record, shape_of, to_float
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Dim, Tensor

where, cat, sigmoid_backward = record("where"), record("cat"), record("sigmoid_backward")

FLOATS = "real floating"
SQRT_HALF = math.sqrt(0.5)
TANH_SCALE = math.sqrt(2 / math.pi)
TANH_CUBIC = 0.044715
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@operator(pointwise, accepts=FLOATS, public=False, method=False)
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """``input * Phi(input)``, where Phi is the normal distribution function; ``approximate`` is "none" or "tanh".

    Hendrycks and Gimpel, Gaussian error linear units, 2016.
    """
    if input.dtype.is_half:  # 1 + erf cancels below 0: in float32, the digits that remain are those of the half type
        return gelu(input.to(float32), approximate).to(input.dtype)
    if approximate == "tanh":
        inner = (input + input * input * input * TANH_CUBIC) * TANH_SCALE
        return input * 0.5 * (inner.tanh() + 1)
    return input * 0.5 * ((input * SQRT_HALF).erf() + 1)


@operator(pointwise, accepts=FLOATS, public=False, method=False, out=False, inplace=False)
def gelu_backward(grad: Tensor, input: Tensor, approximate: str) -> Tensor:
    """The gradient of gelu's input: ``grad * (Phi(x) + x * phi(x))``."""
    if input.dtype.is_half:
        return gelu_backward(grad.to(float32), input.to(float32), approximate).to(input.dtype)
    if approximate == "tanh":
        square = input * input
        t = ((input + square * input * TANH_CUBIC) * TANH_SCALE).tanh()
        slope = (1 - t * t) * (1 + square * (3 * TANH_CUBIC)) * TANH_SCALE
        return grad * (input * slope + t + 1) * 0.5
    density = (input * input * -0.5).exp() * (1 / math.sqrt(2 * math.pi))
    return grad * (((input * SQRT_HALF).erf() + 1) * 0.5 + input * density)


gelu.vjp(input=lambda g, input, approximate: gelu_backward.canonical(g, input, approximate))


@operator(pointwise, accepts="floating", namespace="nn.functional", inplace="argument", out=False)
def silu(input: Tensor) -> Tensor:
    """``input * sigmoid(input)``, also called swish."""
    return input / ((-input).exp() + 1)


@operator(pointwise, accepts="floating", public=False, method=False, out=False, inplace=False)
def silu_backward(grad: Tensor, input: Tensor) -> Tensor:
    """The gradient of silu's input: ``grad * conj(s * (1 + x * (1 - s)))`` with s = sigmoid(x)."""
    s = input.sigmoid()
    return grad * (s * (input * (1 - s) + 1)).conj()


silu.vjp(input=lambda g, input: silu_backward.canonical(g, input))


@operator(pointwise, accepts=FLOATS, namespace="nn.functional", inplace=False, autocast=Autocast("float32"))
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``, a smooth :func:`relu`; the input itself if ``beta * input`` is above
    ``threshold``.
    """
    scaled = input * beta
    # log1p(exp(-|x|)) + max(x, 0) neither overflows nor cancels.
    smooth = ((-scaled.abs()).exp().log1p() + scaled.clamp_min(0)) / beta
    return where(scaled > threshold, input, smooth)


softplus.vjp(input=lambda g, input, beta, threshold: where(input * beta > threshold, g, g * (input * beta).sigmoid()))


@operator(pointwise, accepts=FLOATS, public=False, method=False)
def log_sigmoid(input: Tensor) -> Tensor:
    """``log(sigmoid(input))``, without overflow."""
    return input.clamp_max(0) - (-input.abs()).exp().log1p()


log_sigmoid.vjp(input=lambda g, input: g * (-input).sigmoid())
logsigmoid = overloads("logsigmoid", log_sigmoid, namespace="nn.functional")


@operator(pointwise, accepts=FLOATS, namespace="nn.functional", inplace="argument", out=False)
def leaky_relu(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """``input`` above 0, ``negative_slope * input`` below."""
    return where(input > 0, input, input * negative_slope)


@operator(pointwise, accepts=FLOATS, public=False, method=False, out=False, inplace=False)
def leaky_relu_backward(grad: Tensor, input: Tensor, negative_slope: float) -> Tensor:
    """The gradient of leaky_relu's input: ``grad`` where the input is above 0, ``grad * negative_slope`` below."""
    return where(input > 0, grad, grad * negative_slope)


leaky_relu.vjp(input=lambda g, input, negative_slope: leaky_relu_backward.canonical(g, input, negative_slope))


@operator(pointwise, accepts=FLOATS, public=False, method=False)
def elu(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """``scale * input`` above 0, ``scale * alpha * (exp(input_scale * input) - 1)`` below.

    It serves elu, selu and celu.
    """
    # -0.0 takes the first branch, in which its sign does not depend on clamp_max().
    return where(input >= 0, input * scale, (input * input_scale).clamp_max(0).expm1() * (alpha * scale))


@operator(pointwise, accepts=FLOATS, public=False, method=False, out=False, inplace=False)
def elu_backward(grad: Tensor, input: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    """The gradient of elu's input: ``grad`` times ``scale`` above 0, times the slope of the exponential below."""
    below = (input * input_scale).clamp_max(0).exp() * (alpha * scale * input_scale)
    return grad * where(input > 0, scale, below)


elu.vjp(input=lambda g, input, alpha, scale, input_scale: elu_backward.canonical(g, input, alpha, scale, input_scale))


@operator(pointwise, accepts="real numeric", public=False, method=False)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """``input`` limited to [min_val, max_val]."""
    return input.clamp_min(min_val).clamp_max(max_val)


@operator(pointwise, accepts="real numeric", public=False, method=False, out=False, inplace=False)
def hardtanh_backward(grad: Tensor, input: Tensor, min_val: float, max_val: float) -> Tensor:
    """The gradient of hardtanh's input: ``grad`` between the limits, 0 at them and beyond."""
    return grad.masked_fill((input <= min_val) | (input >= max_val), 0)


hardtanh.vjp(input=lambda g, input, min_val, max_val: hardtanh_backward.canonical(g, input, min_val, max_val))


# -- checked and composed ---------------------------------------------------------------------------------------------
@operator(pointwise, accepts=FLOATS, public=False, inplace=False)
def gelu_checked(input: Tensor, approximate: str = "none") -> Tensor:
    """``input * Phi(input)``, where Phi is the distribution function of the standard normal distribution.

    ``approximate="tanh"`` selects the faster formula by tanh. Hendrycks and Gimpel, Gaussian error linear units, 2016.
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return gelu(input, approximate)


gelu_overloads = overloads("gelu", gelu_checked, namespace="nn.functional")


@operator(pointwise, accepts="real numeric", public=False, inplace="argument", out=False)
def hardtanh_checked(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """``input`` limited to [min_val, max_val]. The limits of integers are truncated.

    Raises ``ValueError`` if ``min_val`` is greater than ``max_val``, and ``RuntimeError`` for negative limits of an
    unsigned type.
    """
    return hardtanh(input, *_hardtanh_limits(input, min_val, max_val))


def _hardtanh_limits(input: Tensor, min_val: float, max_val: float) -> tuple[float, float]:
    """Check the limits of hardtanh, and return them in the kind of the input's elements."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if min_val < 0 and not input.dtype.is_signed:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return (min_val, max_val) if input.is_floating_point() else (int(min_val), int(max_val))


@hardtanh_checked.in_place
def _hardtanh_in_place(input: Tensor, min_val: float, max_val: float) -> Tensor:
    limits = _hardtanh_limits(input, min_val, max_val)
    return hardtanh.form("inplace")(input, *limits)


hardtanh_overloads = overloads("hardtanh", hardtanh_checked, namespace="nn.functional")


@operator(pointwise, accepts="real numeric", namespace="nn.functional", inplace="argument", out=False)
def relu6(input: Tensor) -> Tensor:
    """``min(max(input, 0), 6)``."""
    return hardtanh_checked(input, 0.0, 6.0)


@relu6.in_place
def _relu6_in_place(input: Tensor) -> Tensor:
    return hardtanh_checked.form("inplace")(input, 0.0, 6.0)


@operator(pointwise, accepts=FLOATS, namespace="nn.functional", inplace="argument", out=False)
def hardsigmoid(input: Tensor) -> Tensor:
    """``min(max(input + 3, 0), 6) / 6``."""
    return hardtanh(input + 3, 0.0, 6.0) / 6


@operator(pointwise, accepts=FLOATS, public=False, method=False, out=False, inplace=False)
def hardsigmoid_backward(grad: Tensor, input: Tensor) -> Tensor:
    """The gradient of hardsigmoid's input: ``grad / 6`` between -3 and 3, otherwise 0."""
    return (grad / 6).masked_fill((input <= -3) | (input >= 3), 0)


hardsigmoid.vjp(input=lambda g, input: hardsigmoid_backward.canonical(g, input))


@operator(pointwise, accepts=FLOATS, namespace="nn.functional", inplace="argument", out=False)
def hardswish(input: Tensor) -> Tensor:
    """``input * hardsigmoid(input)``."""
    return input * (hardtanh(input + 3, 0.0, 6.0) / 6)  # the product of both in float16 overflows


@operator(pointwise, accepts=FLOATS, public=False, method=False, out=False, inplace=False)
def hardswish_backward(grad: Tensor, input: Tensor) -> Tensor:
    """The gradient of hardswish's input: 0 up to -3, ``grad * (input / 3 + 1 / 2)`` between, ``grad`` from 3 on."""
    return where(input >= 3, grad, where(input <= -3, 0, grad * (input / 3 + 0.5)))


hardswish.vjp(input=lambda g, input: hardswish_backward.canonical(g, input))


@operator(pointwise, accepts=FLOATS, namespace="nn.functional", inplace="argument", out=False)
def mish(input: Tensor) -> Tensor:
    """``input * tanh(softplus(input))``."""
    return input * softplus(input).tanh()


@operator(pointwise, accepts=FLOATS, public=False, inplace="argument", out=False)
def elu_of_alpha(input: Tensor, alpha: float = 1.0) -> Tensor:
    """``input`` above 0, ``alpha * (exp(input) - 1)`` below."""
    return elu(input, float(alpha))


@elu_of_alpha.in_place
def _elu_in_place(input: Tensor, alpha: float) -> Tensor:
    return elu.form("inplace")(input, float(alpha))


elu_overloads = overloads("elu", elu_of_alpha, namespace="nn.functional")


@operator(pointwise, accepts=FLOATS, method=False, aliases=("nn.functional.selu",), inplace="argument", out=False)
def selu(input: Tensor) -> Tensor:
    """:func:`elu` with the scale and alpha that keep mean 0 and variance 1 (Klambauer et al., 2017)."""
    return elu(input, SELU_ALPHA, SELU_SCALE)


@selu.in_place
def _selu_in_place(input: Tensor) -> Tensor:
    return elu.form("inplace")(input, SELU_ALPHA, SELU_SCALE)


@operator(pointwise, accepts=FLOATS, method=False, aliases=("nn.functional.celu",), inplace="argument", out=False)
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """``max(0, input) + min(0, alpha * (exp(input / alpha) - 1))``."""
    return elu(input, *_celu_settings(alpha))


def _celu_settings(alpha: float) -> tuple[float, float, float]:
    """Return the parameters of :func:`elu` that make it celu."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return float(alpha), 1.0, 1.0 / alpha


@celu.in_place
def _celu_in_place(input: Tensor, alpha: float) -> Tensor:
    return elu.form("inplace")(input, *_celu_settings(alpha))


@operator(pointwise, accepts="real numeric", method=False, aliases=("nn.functional.threshold",), inplace="argument",
          out=False)  # fmt: skip
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """``input`` if it is above ``threshold`` or NaN, else ``value``."""
    return input.masked_fill(input <= threshold, value)


def _prelu_shape(input: Tensor, weight: Tensor) -> tuple[int, ...]:
    shape, weights = shape_of(input), shape_of(weight)
    if len(weights) > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {len(weights)}")
    count = weights[0] if weights else 1
    if count != 1:
        if not shape:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = shape[1] if len(shape) > 1 else 1
        if count != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} and channel "
                f"size = {channels}."
            )
    return shape


@operator(by(_prelu_shape), accepts=FLOATS, aliases=("nn.functional.prelu",), out=False, autocast="lower")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """:func:`leaky_relu` with a learned slope: one number, or one per channel (dim 1)."""
    _prelu_shape(input, weight)
    slope = weight.reshape(() if weight.numel() == 1 else (-1, *[1] * (input.ndim - 2)))
    return sloped(input, slope)


@operator(pointwise, accepts=FLOATS, public=False, method=False, out=False, inplace=False)
def sloped(input: Tensor, slope: Tensor) -> Tensor:
    """``input`` above 0, ``slope * input`` below; :func:`prelu` for slopes that broadcast."""
    return where(input > 0, input, input * slope)


@operator(pointwise, accepts=FLOATS, public=False, method=False, out=False, inplace=False)
def sloped_backward(grad: Tensor, input: Tensor, slope: Tensor) -> Tensor:
    """The gradient of sloped's input: ``grad`` where the input is above 0, ``grad * slope`` below."""
    return where(input > 0, grad, grad * slope)


sloped.vjp(
    input=lambda g, input, slope: sloped_backward.canonical(g, input, slope),
    slope=lambda g, input: where(input > 0, 0, g * input),
)


@operator(pointwise, accepts=FLOATS, inplace=False, aliases=("nn.functional.hardshrink",))
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """0 if ``abs(input) <= lambd``, else ``input``."""
    return input.masked_fill(input.abs() <= lambd, 0)


@operator(pointwise, accepts=FLOATS, public=False, method=False, out=False, inplace=False)
def shrink_backward(grad: Tensor, input: Tensor, lambd: float) -> Tensor:
    """The gradient of hardshrink's and softshrink's input: 0 if ``abs(input) <= lambd``, else ``grad``."""
    return grad.masked_fill(input.abs() <= lambd, 0)


hardshrink.vjp(input=lambda g, input, lambd: shrink_backward.canonical(g, input, lambd))


@operator(pointwise, accepts=FLOATS, public=False, method=False, inplace=False)
def soft_threshold(input: Tensor, lambd: float) -> Tensor:
    """:func:`softshrink` by a width that is not negative."""
    zero = input.new_zeros(()).copysign(input.detach())  # a constant, since the derivative there is 0
    return where(input.abs() <= lambd, zero, where(input > 0, input - lambd, input + lambd))


soft_threshold.vjp(input=lambda g, input, lambd: shrink_backward.canonical(g, input, lambd))


@operator(pointwise, accepts=FLOATS, inplace=False, namespace="nn.functional")
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """``input`` moved towards 0 by ``lambd``, or 0 with the input's sign if ``abs(input) <= lambd``."""
    if not lambd >= 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd:g}.")
    return soft_threshold(input, lambd)


@operator(pointwise, promote=to_float, inplace=False, out=False, namespace="nn.functional")
def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
    return input - input.tanh()


@operator(pointwise, promote=to_float, inplace=False, out=False, namespace="nn.functional")
def softsign(input: Tensor) -> Tensor:
    """``input / (1 + abs(input))``."""
    return input / (input.abs() + 1)


def _glu_shape(input: Tensor, dim: int) -> tuple[int, ...]:
    shape = shape_of(input)
    if not shape:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if shape[dim] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {shape[dim]}")
    return (*shape[:dim], shape[dim] // 2, *shape[dim + 1 :])


@operator(by(_glu_shape), accepts="floating", out=False, namespace="nn.functional")
def glu(input: Tensor, dim: Dim = -1) -> Tensor:
    """The first half of the input along ``dim`` times the sigmoid of the second half."""
    half = _glu_shape(input, dim)[dim]
    return input.narrow(dim, 0, half) * input.narrow(dim, half, half).sigmoid()


def _glu_vjp(g: Tensor, input: Tensor, dim: int) -> Tensor:
    """Return the gradient of both halves at once; those of two views would each be added to zeros."""
    half = g.shape[dim]
    gate = input.narrow(dim, half, half).sigmoid()
    through = sigmoid_backward.canonical(g * input.narrow(dim, 0, half).conj(), gate)
    gradient: Tensor = cat((g * gate.conj(), through), dim)
    return gradient


glu.vjp(input=_glu_vjp)
