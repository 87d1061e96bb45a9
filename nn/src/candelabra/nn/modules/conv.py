"""Convolutions."""

from __future__ import annotations

import math
from typing import Any

from candelabra import Tensor, empty
from candelabra.nn import functional as F
from candelabra.nn import init
from candelabra.nn.modules.module import Module
from candelabra.nn.parameter import Parameter, unset

__all__ = ["Conv1d", "Conv2d", "Conv3d"]

_MODES = ("zeros", "reflect", "replicate", "circular")


def _tuple(value: Any, rank: int) -> tuple[int, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * rank


class _Conv(Module):
    """The common base of the convolutions of all ranks. Subclasses define ``rank`` and ``_convolve``."""

    rank: int
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
        if padding == "same" and any(step != 1 for step in _tuple(stride, self.rank)):
            raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {set(_MODES)}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _tuple(kernel_size, self.rank)
        self.stride = _tuple(stride, self.rank)
        self.padding = padding if isinstance(padding, str) else _tuple(padding, self.rank)
        self.dilation = _tuple(dilation, self.rank)
        self.groups = groups
        self.padding_mode = padding_mode
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(empty(shape, device=device, dtype=dtype))
        self.register_parameter("bias", unset(bias, out_channels, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias from U(-k, k), k = 1 / sqrt(in_channels / groups · size of the kernel)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan_in:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._around(), mode=self.padding_mode), (0,) * self.rank
        out: Tensor = type(self)._convolve(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )
        return out

    @staticmethod
    def _convolve(*args: Any) -> Any:
        raise NotImplementedError("a subclass of _Conv must define _convolve")

    def _around(self) -> list[int]:
        """Return the padding as ``F.pad`` takes it: (before, after) of each dim, the last dim first."""
        if self.padding == "valid":
            return [0] * (2 * self.rank)
        sides: list[int] = []
        for dim in reversed(range(self.rank)):
            if self.padding == "same":
                total = self.dilation[dim] * (self.kernel_size[dim] - 1)
                sides += [total // 2, total - total // 2]
            else:
                sides += [self.padding[dim]] * 2  # type: ignore[list-item]
        return sides

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self.rank:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.rank:
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class Conv1d(_Conv):
    """Cross-correlation over (N, C, L) or (C, L); see :class:`Conv2d`."""

    rank = 1
    _convolve = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Cross-correlation over (N, C, H, W) or (C, H, W) with out_channels filters, plus a bias.

    ``padding``: a number per side, "same" or "valid"; ``groups``: the number of groups of channels, which are convolved
    separately.
    Raises ``ValueError`` for channels that are not divisible by the groups and for an unknown padding.
    """

    rank = 2
    _convolve = staticmethod(F.conv2d)


class Conv3d(_Conv):
    """Cross-correlation over (N, C, D, H, W) or (C, D, H, W); see :class:`Conv2d`."""

    rank = 3
    _convolve = staticmethod(F.conv3d)


def __dir__() -> list[str]:
    return sorted(__all__)
