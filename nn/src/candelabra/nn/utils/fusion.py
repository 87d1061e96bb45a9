"""Batch norms in evaluation as part of the convolution or the linear layer before them."""

from __future__ import annotations

import copy
from typing import Any

import candelabra as cd
from candelabra import Tensor, no_grad
from candelabra.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check_evaluation(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a copy of a convolution that computes ``bn(conv(x))``; ``transpose``: it is a transposed convolution.

    Raises ``AssertionError`` unless both modules are in evaluation mode and the norm has running statistics.
    """
    _check_evaluation(conv, bn)
    fused = copy.deepcopy(conv)
    statistics = bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, *statistics, transpose)
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return the weight and the bias of :func:`fuse_conv_bn_eval`, from those of both modules."""
    channels = 1 if transpose else 0
    shape = [-1 if dim == channels else 1 for dim in range(conv_w.ndim)]
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a copy of a linear layer that computes ``bn(linear(x))``.

    Raises ``AssertionError`` unless both modules are in evaluation mode, the norm has running statistics, and it has
    one channel or as many as the layer has output features.
    """
    _check_evaluation(linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    statistics = bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, *statistics)
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return the weight and the bias of :func:`fuse_linear_bn_eval`, from those of both modules."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _fused(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    scale: Tensor | None,
    shift: Tensor | None,
    shape: list[int],
) -> tuple[Parameter, Parameter]:
    """Apply ``(y - mean) / sqrt(variance + eps) * scale + shift`` to weight and bias; ``shape``: that of the scale."""
    trained = weight.requires_grad, bias is not None and bias.requires_grad
    dtypes = weight.dtype, weight.dtype if bias is None else bias.dtype
    with no_grad():
        bias = cd.zeros_like(mean) if bias is None else bias
        factor = (variance + eps).rsqrt() * (cd.ones_like(mean) if scale is None else scale)
        made = (bias - mean) * factor
        made = made if shift is None else made + shift
        return (
            Parameter((weight * factor.reshape(shape)).to(dtypes[0]), trained[0]),
            Parameter(made.to(dtypes[1]), trained[1]),
        )


def __dir__() -> list[str]:
    return sorted(__all__)
