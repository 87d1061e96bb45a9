"""What networks are made of: softmax, activations, lookup. Each is composed of other operators and has a derivative.

The derivatives that are worth a kernel of their own are composites too, named ``…_backward``. They have no derivative
and so run above autograd: their operators are recorded when a second derivative is asked for, and a backend's override
serves the ordinary backward pass.
"""

from __future__ import annotations

import math

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra.operator.record import operator
from candelabra.operator.rules import by, like_input, pointwise, shape_of
from candelabra.ops.arithmetic import where

if TYPE_CHECKING:
    from candelabra.typing import Dim, Index, Tensor

FLOATS = "real floating"


# -- softmax ----------------------------------------------------------------------------------------------------------
@operator(like_input, accepts=FLOATS, public=False, out=False)
def softmax(input: Tensor, dim: Dim) -> Tensor:
    """``exp(input) / sum(exp(input))`` along ``dim``, shifted by the maximum so that nothing overflows."""
    if not input.numel():
        return input.clone()
    powers = (input - input.amax(dim, True)).exp()
    return powers / powers.sum(dim, True)


@operator(like_input, accepts=FLOATS, public=False, method=False, out=False)
def softmax_backward(grad: Tensor, output: Tensor, dim: Dim) -> Tensor:
    """The gradient of softmax's input: ``output * (grad - sum(grad * output))``."""
    weighted = grad * output
    return weighted - output * weighted.sum(dim, True)


softmax.vjp(input=lambda g, out, dim: softmax_backward(g, out, dim))


@operator(like_input, accepts=FLOATS, public=False, out=False)
def log_softmax(input: Tensor, dim: Dim) -> Tensor:
    """``log(softmax(input))`` along ``dim``, without the rounding of the detour."""
    if not input.numel():
        return input.clone()
    shifted = input - input.amax(dim, True)
    return shifted - shifted.exp().sum(dim, True).log()


@operator(like_input, accepts=FLOATS, public=False, method=False, out=False)
def log_softmax_backward(grad: Tensor, output: Tensor, dim: Dim) -> Tensor:
    """The gradient of log_softmax's input: ``grad - exp(output) * sum(grad)``."""
    return grad - output.exp() * grad.sum(dim, True)


log_softmax.vjp(input=lambda g, out, dim: log_softmax_backward(g, out, dim))


# -- activations ------------------------------------------------------------------------------------------------------
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


@operator(pointwise, accepts=FLOATS, public=False, method=False)
def silu(input: Tensor) -> Tensor:
    """``input * sigmoid(input)``, also called swish."""
    return input / ((-input).exp() + 1)


@operator(pointwise, accepts=FLOATS, public=False, method=False, out=False, inplace=False)
def silu_backward(grad: Tensor, input: Tensor) -> Tensor:
    """The gradient of silu's input: ``grad * s * (1 + x * (1 - s))`` with s = sigmoid(x)."""
    s = input.sigmoid()
    return grad * s * (input * (1 - s) + 1)


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


# -- lookup -----------------------------------------------------------------------------------------------------------
@by
def _looked_up(weight: Tensor, indices: Tensor, *_: Any) -> tuple[int, ...]:
    rows = shape_of(weight)
    if len(rows) != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.numel():
        low, high = int(indices.amin().item()), int(indices.amax().item())
        if low < 0 or high >= rows[0]:
            raise IndexError("index out of range in self")
    return (*shape_of(indices), rows[1])


@operator(_looked_up, public=False, method=False, out=False)
def embedding(weight: Tensor, indices: Index, padding_idx: int = -1, scale_grad_by_freq: bool = False) -> Tensor:
    """The rows of ``weight`` that ``indices`` name: shape (*indices.shape, weight.shape[1]).

    The row ``padding_idx`` (-1: none) gets no gradient; ``scale_grad_by_freq`` divides each row's by how often it was
    looked up.
    """
    ...


def _embedding_back(g: Tensor, weight_spec: Any, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    from candelabra.ops.creation import full
    from candelabra.ops.indexing import index_add

    rows, width = weight_spec.shape
    flat, picked = g.reshape((indices.numel(), width)), indices.reshape((indices.numel(),))
    if padding_idx >= 0:
        flat = flat.masked_fill((picked == padding_idx).unsqueeze(1), 0)
    if scale_grad_by_freq:
        none = full((rows,), 0, dtype=g.dtype, device=g.device)
        ones = full(picked.shape, 1, dtype=g.dtype, device=g.device)
        flat = flat / index_add(none, 0, picked, ones).index_select(0, picked).unsqueeze(1)
    return index_add(full((rows, width), 0, dtype=g.dtype, device=g.device), 0, picked, flat)


embedding.vjp(weight=_embedding_back)
