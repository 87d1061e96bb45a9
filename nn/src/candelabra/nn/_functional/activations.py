"""Activations with an implicit dim, with random numbers, and the in-place forms of activations."""

from __future__ import annotations

import math
import warnings

from candelabra.library import public, record
from candelabra.nn._operators.activations import celu, elu_overloads, hardtanh_overloads, leaky_relu, selu, threshold
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import DType, Tensor

where = record("where")
relu_record = record("relu")
softmax_record = record("softmax")
log_softmax_record = record("log_softmax")
copied = record("copied")


@public(namespace="nn.functional", guarded=False)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``; NaN stays NaN. ``inplace=True`` writes the result into the input."""
    out: Tensor = relu_record.form("inplace")(input) if inplace else relu_record.function(input)
    return out


@public(method=False, aliases=("nn.functional.rrelu",))
def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """:func:`leaky_relu` with slopes drawn uniformly from [lower, upper] in training, and their mean otherwise."""
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return leaky_relu.form("inplace" if inplace else "function")(input, (lower + upper) / 2)
    from candelabra import rand_like

    slope = rand_like(input) * (upper - lower) + lower
    # The backward pass needs the values that are overwritten.
    x = input.clone() if inplace else input
    out: Tensor = where(x > 0, x, x * slope)
    return copied.form("inplace")(input, out) if inplace else out


@public(method=False, aliases=("nn.functional.rrelu_",))
def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """In-place form of :func:`rrelu`."""
    return rrelu(input, lower, upper, training, True)


@public(method=False, aliases=("nn.functional.selu_",))
def selu_(input: Tensor) -> Tensor:
    """In-place form of :func:`selu`."""
    return selu.form("inplace")(input)


@public(method=False, aliases=("nn.functional.celu_",))
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of :func:`celu`."""
    return celu.form("inplace")(input, alpha)


@public(method=False, aliases=("nn.functional.threshold_",))
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """In-place form of :func:`threshold`."""
    return threshold_record.form("inplace")(input, threshold, value)


threshold_record = threshold


@public(namespace="nn.functional", guarded=False)
def relu_(input: Tensor) -> Tensor:
    """In-place form of :func:`relu`."""
    return relu(input, True)


@public(namespace="nn.functional")
def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of :func:`elu`."""
    out: Tensor = elu_overloads(input, alpha, inplace=True)
    return out


@public(namespace="nn.functional")
def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place form of :func:`leaky_relu`."""
    return leaky_relu.form("inplace")(input, negative_slope)


@public(namespace="nn.functional")
def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place form of :func:`hardtanh`."""
    out: Tensor = hardtanh_overloads(input, min_val, max_val, inplace=True)
    return out


@public(namespace="nn.functional")
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the relaxed categorical distribution: ``softmax((logits + noise) / tau)`` with Gumbel noise (Jang et
    al.; Maddison et al., ICLR 2017).

    With ``hard``, the sample is one-hot along ``dim``, and its gradient that of the relaxed sample. ``eps`` has no
    effect and is deprecated.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    if logits.ndim:
        logits.size(dim)  # raises before the generator advances
    noise = -logits.new_empty(logits.shape).exponential_().log()
    soft: Tensor = softmax_record.function((logits + noise) / tau, dim)
    if not hard:
        return soft
    one_hot = soft.new_zeros(soft.shape).scatter_(dim, soft.argmax(dim, keepdim=True), 1.0)
    # The sum is one-hot, and its gradient is that of the last term.
    return one_hot - soft.detach() + soft


@public(namespace="nn.functional")
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """``exp(input) / sum(exp(input))`` along ``dim``; ``dtype`` casts the input first.

    The default of ``dim`` is 0 for tensors of 0, 1 and 3 dims, and 1 for others.
    """
    if dtype is not None:
        input = input.to(dtype)
    out: Tensor = softmax_record.function(input, _implicit_dim(input) if dim is None else dim)
    return out


@public(namespace="nn.functional")
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """``log(softmax(input))`` along ``dim``, without overflow. See :func:`softmax` for the arguments."""
    if dtype is not None:
        input = input.to(dtype)
    out: Tensor = log_softmax_record.function(input, _implicit_dim(input) if dim is None else dim)
    return out


@public(namespace="nn.functional")
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """``softmax(-input)`` along ``dim``. See :func:`softmax` for the arguments."""
    return softmax(-input, dim, dtype=dtype)


def _implicit_dim(input: Tensor) -> int:
    """Return the dim that PyTorch takes if none is given."""
    return 0 if input.ndim in (0, 1, 3) else 1
