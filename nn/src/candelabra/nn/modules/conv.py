"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import candelabra as cd
from candelabra import Tensor
from candelabra.nn import functional as F
from candelabra.nn import init
from candelabra.nn.modules.lazy import LazyModuleMixin
from candelabra.nn.modules.module import Module
from candelabra.nn.modules.utils import _ntuple, _reverse_repeat_tuple
from candelabra.nn.parameter import Parameter, UninitializedParameter, unset

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "LazyConv1d", "LazyConv2d",
    "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d",
]  # fmt: skip

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """The common base of all convolutions. The sizes have one int per spatial dim."""

    in_channels: int
    out_channels: int
    padding: Any
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
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
        if padding == "same" and any(step != 1 for step in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            raise ValueError(f"padding_mode must be one of {set(_MODES)}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = _around(padding, kernel_size, dilation)
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        shape = (first, second // groups, *kernel_size)
        self.weight = Parameter(cd.empty(shape, device=device, dtype=dtype))
        self.register_parameter("bias", unset(bias, out_channels, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias from U(-k, k), k = 1 / sqrt(fan_in), where fan_in is the size of ``weight[0]``."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan_in:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        rank = len(self.kernel_size)
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * rank:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * rank:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * rank:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


def _around(padding: str | Sequence[int], kernel_size: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """Return the padding as ``F.pad`` takes it: (before, after) of each dim, the last dim first."""
    if not isinstance(padding, str):
        return list(_reverse_repeat_tuple(padding, 2))
    sides: list[int] = []
    for kernel, step in zip(reversed(kernel_size), reversed(dilation), strict=True):
        total = step * (kernel - 1) if padding == "same" else 0
        sides += [total // 2, total - total // 2]
    return sides


# -- convolutions -----------------------------------------------------------------------------------------------------
class _Conv(_ConvNd):
    """The common base of Conv1d to Conv3d. Subclasses define ``_rank``, and ``_conv_forward`` for it."""

    _rank: int

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
        sizes = _ntuple(self._rank)
        super().__init__(
            in_channels, out_channels, sizes(kernel_size), sizes(stride),
            padding if isinstance(padding, str) else sizes(padding), sizes(dilation), False, sizes(0), groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve with any weight and bias; subclasses of users call this with weights of their own."""
        raise NotImplementedError(f"{type(self).__name__} must define _conv_forward")

    def _padded(self, convolve: Callable[..., Any], input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Convolve, after padding with values of the input."""
        around = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        out: Tensor = convolve(around, weight, bias, self.stride, (0,) * self._rank, self.dilation, self.groups)
        return out

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Cross-correlation over (N, C, L) or (C, L); see :class:`Conv2d`."""

    _rank = 1

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            return self._padded(F.conv1d, input, weight, bias)
        return F.conv1d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_Conv):
    """Cross-correlation over (N, C, H, W) or (C, H, W) with out_channels filters, plus a bias.

    ``padding``: a number per side, "same" or "valid"; ``padding_mode``: where the values around the input come from
    ("zeros", "reflect", "replicate", "circular"); ``groups``: the number of groups of channels, which are convolved
    separately.
    Raises ``ValueError`` for channels that are not divisible by the groups and for an unknown padding.
    """

    _rank = 2

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            return self._padded(F.conv2d, input, weight, bias)
        return F.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class Conv3d(_Conv):
    """Cross-correlation over (N, C, D, H, W) or (C, D, H, W); see :class:`Conv2d`."""

    _rank = 3

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            return self._padded(F.conv3d, input, weight, bias)
        return F.conv3d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


# -- transposed convolutions ------------------------------------------------------------------------------------------
class _ConvTransposeNd(_ConvNd):
    """The common base of ConvTranspose1d to ConvTranspose3d. Subclasses define ``_rank``."""

    _rank: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        if isinstance(padding, str):
            raise TypeError(f"{type(self).__name__}: argument 'padding' must be an int or a tuple of ints, not str")
        sizes = _ntuple(self._rank)
        super().__init__(
            in_channels, out_channels, sizes(kernel_size), sizes(stride), sizes(padding), sizes(dilation), True,
            sizes(output_padding), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> Sequence[int]:
        """Return the ``output_padding`` with which the output gets the given spatial size."""
        if self.padding_mode != "zeros":  # set after construction
            raise ValueError(f"Only `zeros` padding mode is supported for ConvTranspose{self._rank}d")
        rank = self._rank
        if output_size is None or input.ndim not in (rank + 1, rank + 2):
            return self.output_padding
        lead = 2 if input.ndim == rank + 2 else 1
        wanted = tuple(output_size)
        if len(wanted) == lead + rank:
            wanted = wanted[lead:]
        if len(wanted) != rank:
            raise ValueError(
                f"ConvTranspose{rank}D: for {input.ndim}D input, output_size must have {rank} or {lead + rank} "
                f"elements (got {len(wanted)})"
            )
        each = zip(input.shape[lead:], self.kernel_size, self.stride, self.padding, self.dilation, strict=True)
        least = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, k, s, p, d in each]
        most = [low + s - 1 for low, s in zip(least, self.stride, strict=True)]
        if any(not low <= size <= high for low, size, high in zip(least, wanted, most, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} to {most} "
                f"(for an input of {input.shape[2:]})"
            )
        return [size - low for size, low in zip(wanted, least, strict=True)]


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution over (N, C, L) or (C, L); see :class:`ConvTranspose2d`."""

    _rank = 1

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return F.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution over (N, C, H, W) or (C, H, W), plus a bias: the adjoint of :class:`Conv2d` in its input.

    With a stride s, s different sizes of the output fit one size of the input. ``output_padding`` selects one of them,
    and so does the argument ``output_size`` of the call.
    Raises ``ValueError`` for channels that are not divisible by the groups, for a padding mode other than "zeros", and
    for an output size that does not fit.
    """

    _rank = 2

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution over (N, C, D, H, W) or (C, D, H, W); see :class:`ConvTranspose2d`."""

    _rank = 3

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        extra = self._output_padding(input, output_size)
        return F.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


# -- convolutions that learn the number of input channels from their first input --------------------------------------
class _LazyConvXdMixin(LazyModuleMixin):
    """What the lazy convolutions add: weight and bias get their shapes at the first call."""

    _rank: int
    in_channels: int
    out_channels: int
    groups: int
    transposed: bool
    kernel_size: tuple[int, ...]
    weight: Any
    bias: Any

    def _defer(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """Replace the parameters, which have been made for no channels."""
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw weight and bias, if their shapes are known."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc] # that of the convolution

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Give weight and bias the shapes that fit the input's channels, and draw them."""
        if not self.has_uninitialized_params():
            if self.in_channels == 0:  # a state has been loaded
                self.in_channels = self._get_in_channels(input)
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        assert isinstance(self.weight, UninitializedParameter)
        self.weight.materialize((first, second // self.groups, *self.kernel_size))
        if self.bias is not None:
            assert isinstance(self.bias, UninitializedParameter)
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        rank = self._rank
        if input.ndim not in (rank + 1, rank + 2):
            raise RuntimeError(
                f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {type(self).__name__}, but got "
                f"input of size: {input.shape}"
            )
        return int(input.shape[-rank - 1])


class _LazyConv(_LazyConvXdMixin):
    """The constructor of LazyConv1d to LazyConv3d."""

    def __init__(
        self,
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
        # Without channels and bias, the base class draws no values that would be replaced.
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._defer(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConv, Conv1d):
    """A :class:`Conv1d` whose ``in_channels`` is the number of channels of its first input."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A :class:`Conv2d` whose ``in_channels`` is the number of channels of its first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A :class:`Conv3d` whose ``in_channels`` is the number of channels of its first input."""

    cls_to_become = Conv3d


class _LazyConvTranspose(_LazyConvXdMixin):
    """The constructor of LazyConvTranspose1d to LazyConvTranspose3d."""

    def __init__(
        self,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._defer(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A :class:`ConvTranspose1d` whose ``in_channels`` is the number of channels of its first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A :class:`ConvTranspose2d` whose ``in_channels`` is the number of channels of its first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A :class:`ConvTranspose3d` whose ``in_channels`` is the number of channels of its first input."""

    cls_to_become = ConvTranspose3d


def __dir__() -> list[str]:
    return sorted(__all__)
