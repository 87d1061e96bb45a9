"""The gradients of convolutions, as ``torch.nn.grad``: with respect to an input or a weight of a given size."""

from __future__ import annotations

from typing import Any

from candelabra import Tensor
from candelabra.library import record
from candelabra.nn.modules.utils import _ntuple

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _geometry(
    rank: int, input: Any, weight: Any, output: Tensor, stride: Any, padding: Any, dilation: Any, groups: int
) -> tuple[Any, ...]:
    """Return stride, padding, dilation and groups. Raises ``RuntimeError`` if the three sizes do not fit together."""
    from candelabra.nn._operators.convolution import check_geometry, output_size

    sizes = _ntuple(rank)
    steps, paddings, dilations = sizes(stride), sizes(padding), sizes(dilation)
    if len(input) != rank + 2 or len(weight) != rank + 2:
        raise RuntimeError(
            f"Expected {rank + 2}-dimensional sizes of input and weight, but got {list(input)} and {list(weight)}"
        )
    check_geometry(tuple(input), tuple(weight), paddings, dilations, groups)
    each = zip(input[2:], weight[2:], steps, paddings, dilations, strict=True)
    expected = [input[0], weight[0], *[output_size(*dim) for dim in each]]
    if list(output.shape) != expected:
        raise RuntimeError(f"Expected grad_output of size {expected}, but got {list(output.shape)}")
    return steps, paddings, dilations, groups


def _input(rank: int, input_size: Any, weight: Tensor, grad_output: Tensor, *geometry: Any) -> Tensor:
    checked = _geometry(rank, input_size, weight.shape, grad_output, *geometry)
    out: Tensor = record("conv_input")(grad_output, weight, tuple(input_size), *checked)
    return out


def _weight(rank: int, input: Tensor, weight_size: Any, grad_output: Tensor, *geometry: Any) -> Tensor:
    checked = _geometry(rank, input.shape, weight_size, grad_output, *geometry)
    out: Tensor = record("conv_weight")(input, grad_output, tuple(weight_size), *checked)
    return out


def conv1d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of ``F.conv1d`` in an input of size (N, C, L), from the gradient of its output."""
    return _input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of ``F.conv1d`` in a weight of size (O, C / groups, k), from the gradient of its output."""
    return _weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of ``F.conv2d`` in an input of size (N, C, H, W), from the gradient of its output."""
    return _input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of ``F.conv2d`` in a weight of size (O, C / groups, kH, kW), from the gradient of its output."""
    return _weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Any,
    weight: Tensor,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of ``F.conv3d`` in an input of size (N, C, D, H, W), from the gradient of its output."""
    return _input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Tensor,
    weight_size: Any,
    grad_output: Tensor,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """The gradient of ``F.conv3d`` in a weight of size (O, C / groups, kD, kH, kW), from the gradient of its output."""
    return _weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)


def __dir__() -> list[str]:
    return sorted(__all__)
