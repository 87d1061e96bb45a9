"""Activations, as in ``torch.nn.functional``. ``inplace=True`` writes into the input, as PyTorch does."""

from __future__ import annotations

import math
from collections.abc import Callable

from candelabra.library import public, record, store, wrap_dim
from candelabra.nn._operators import activations as network
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import DType, Tensor

where = record("where")
clone = record("clone")
copied = record("copied")
softmax_record = record("softmax")
log_softmax_record = record("log_softmax")


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _applied(function: Callable[..., Tensor], inplace: bool, input: Tensor, *arguments: Any) -> Tensor:
    """``function(input, *arguments)``; in place it is computed from a copy, which the backward pass can still see."""
    if not inplace:
        return function(input, *arguments)
    written: Tensor = copied.form("inplace")(input, function(clone(input), *arguments))
    return written


# -- rectifiers -------------------------------------------------------------------------------------------------------
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``; NaN stays NaN."""
    out: Tensor = record("relu").form("inplace" if inplace else "function")(input)
    return out


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(input, 0), 6)``."""
    return hardtanh(input, 0.0, 6.0, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``input`` above 0, ``negative_slope * input`` below."""
    return _applied(network.leaky_relu, inplace, input, float(negative_slope))


@public
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """:func:`leaky_relu` with a learnt slope: one number, or one per channel (dim 1)."""
    count = weight.numel()
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if count != 1:
        if not input.ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        if count != channels:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} and channel "
                f"size = {channels}."
            )
        weight = weight.reshape((count, *[1] * (input.ndim - 2)))
    elif weight.ndim:
        weight = weight.reshape(())
    out: Tensor = where(input > 0, input, input * weight)
    return out


@public(method=False)
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """:func:`leaky_relu` with slopes drawn uniformly from [lower, upper] in training, and their middle otherwise."""
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    from candelabra import rand

    slope = rand(*input.shape, dtype=input.dtype, device=input.device) * (upper - lower) + lower
    return _applied(lambda x: where(x > 0, x, x * slope), inplace, input)


@public(method=False)
def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """In-place form of :func:`rrelu`."""
    return rrelu(input, lower, upper, training, True)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``input`` above 0, ``alpha * (exp(input) - 1)`` below."""
    return _applied(network.elu, inplace, input, float(alpha))


@public(method=False)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """:func:`elu` with the scale and alpha that keep mean 0 and variance 1 (Klambauer et al., 2017)."""
    return _applied(network.elu, inplace, input, SELU_ALPHA, SELU_SCALE)


@public(method=False)
def selu_(input: Tensor) -> Tensor:
    """In-place form of :func:`selu`."""
    return selu(input, True)


@public(method=False)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(0, input) + min(0, alpha * (exp(input / alpha) - 1))``."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _applied(network.elu, inplace, input, float(alpha), 1.0, 1.0 / alpha)


@public(method=False)
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of :func:`celu`."""
    return celu(input, alpha, True)


def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """``input * Phi(input)``; ``approximate="tanh"`` is the faster formula of that name."""
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    made: Tensor = network.gelu.function(input, approximate, out=out)
    return made


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * sigmoid(input)``."""
    return _applied(network.silu, inplace, input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * tanh(softplus(input))``."""
    return _applied(lambda x: x * network.softplus(x).tanh(), inplace, input)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``, a smooth :func:`relu`; linear above ``threshold``."""
    made: Tensor = network.softplus.function(input, float(beta), float(threshold), out=out)
    return made


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(sigmoid(input))``."""
    made: Tensor = network.log_sigmoid.function(input, out=out)
    return made


@public(method=False)
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``input`` where it is above ``threshold`` (or NaN), else ``value``."""
    return _applied(lambda x: x.masked_fill(x <= threshold, value), inplace, input)


@public(method=False)
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """In-place form of :func:`threshold`."""
    return _applied(lambda x: x.masked_fill(x <= threshold, value), True, input)


# -- clipped and shrunk -----------------------------------------------------------------------------------------------
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """``input`` limited to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if not input.is_floating_point():
        min_val, max_val = int(min_val), int(max_val)
    return _applied(network.hardtanh, inplace, input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(input + 3, 0), 6) / 6``."""
    return _applied(lambda x: network.hardtanh(x + 3, 0.0, 6.0) / 6, inplace, input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * hardsigmoid(input)``."""
    return _applied(lambda x: x * network.hardtanh(x + 3, 0.0, 6.0) / 6, inplace, input)


@public
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """0 where ``abs(input) <= lambd``, else ``input``."""
    made: Tensor = store("hardshrink", input.masked_fill(input.abs() <= lambd, 0), out)
    return made


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """``input`` moved towards 0 by ``lambd``, and 0 where that would cross it."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd:g}.")
    moved = where(input > 0, input - lambd, input + lambd)
    made: Tensor = store("softshrink", moved.masked_fill(input.abs() <= lambd, 0), out)
    return made


def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """``input / (1 + abs(input))``."""
    return input / (input.abs() + 1)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-input))``."""
    return input.sigmoid()


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of the input along ``dim`` times the sigmoid of the second half."""
    if not input.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    along = wrap_dim(dim, input.ndim)
    size = input.shape[along]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {along} is size {size}")
    return input.narrow(along, 0, size // 2) * input.narrow(along, size // 2, size // 2).sigmoid()


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """``exp(input) / sum(exp(input))`` along ``dim``; ``dtype`` casts the input first.

    Without ``dim`` it is 0 for tensors of 0, 1 and 3 dims, and 1 for others.
    """
    if dtype is not None:
        input = input.to(dtype)
    out: Tensor = softmax_record.function(input, _implicit_dim(input) if dim is None else dim)
    return out


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """``log(softmax(input))`` along ``dim``, without overflow. See :func:`softmax` for the arguments."""
    if dtype is not None:
        input = input.to(dtype)
    out: Tensor = log_softmax_record.function(input, _implicit_dim(input) if dim is None else dim)
    return out


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """``softmax(-input)`` along ``dim``. See :func:`softmax` for the arguments."""
    return softmax(-input, dim, dtype=dtype)


def _implicit_dim(input: Tensor) -> int:
    return 0 if input.ndim in (0, 1, 3) else 1
