"""Sliding windows: extraction and its adjoint, power-average pooling, local response normalization."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra.dtypes import int64
from candelabra.library import public, record
from candelabra.nn._functional.pooling import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from candelabra.nn._functional.sizes import Ints, Sizes, per_dim
from candelabra.nn._operators.padding import pad
from candelabra.typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.typing import Tensor

new_arange = record("new_arange")


# -- columns ----------------------------------------------------------------------------------------------------------
def _geometry(kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> tuple[Ints, Ints, Ints, Ints]:
    """Check kernel, dilation, padding and stride, and return them as pairs."""
    found = []
    for name, value, lowest in (
        ("kernel size", kernel_size, 1), ("dilation", dilation, 1), ("padding", padding, 0), ("stride", stride, 1),
    ):  # fmt: skip
        pair = per_dim(value, 2)
        if pair is None:
            raise RuntimeError(f"It is expected {name.replace(' ', '_')} equals to 2, but got size {len(value)}")
        if min(pair) < lowest:
            bound = "greater than zero" if lowest else "non-negative"
            short = {"kernel size": "kernel", "padding": "pad"}.get(name, name)
            raise RuntimeError(f"{name} should be {bound}, but got {short}_height: {pair[0]} {short}_width: {pair[1]}")
        found.append(pair)
    return found[0], found[1], found[2], found[3]


def _counts(sizes: Ints, kernel: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Ints:
    """Return the number of windows per dim."""
    each = zip(sizes, kernel, dilation, padding, stride, strict=True)
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in each)


def _shown(sizes: Sequence[int]) -> str:
    return f"({', '.join(map(str, sizes))})"


def _batched(input: Tensor, rank: int) -> Tensor:
    """Return the input with a batch dim, the only dim that may be empty."""
    shape = tuple(input.shape)
    if len(shape) not in (rank - 1, rank) or 0 in shape[len(shape) - rank + 1 :]:
        raise RuntimeError(
            f"Expected {rank - 1}D or {rank}D (batch mode) tensor for input with possibly 0 batch size and non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    if not (input.is_floating_point() or input.is_complex() or input.dtype.name == "bool"):
        raise NotImplementedError(f"\"unfold\" not implemented for '{input.dtype.title}'")
    return input if len(shape) == rank else input.unsqueeze(0)


def _window_positions(kernel: int, dilation: int, stride: int, count: int, like: Tensor) -> Tensor:
    """Return the position of kernel element k in window i, flattened in the order (k, i)."""
    element: Any = new_arange(like, 0, 1, kernel, dtype=int64).unsqueeze(1)
    window: Any = new_arange(like, 0, 1, count, dtype=int64)
    positions: Tensor = (element * dilation + window * stride).reshape((kernel * count,))
    return positions


@public(namespace="nn.functional")
def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Extract windows: (N, C, H, W) to (N, C * kH * kW, windows), or (C, H, W) without N, with zeros as padding.

    One dim after the other is indexed by the positions of the windows. Raises ``NotImplementedError`` for integers.
    """
    kernel, dilations, paddings, steps = _geometry(kernel_size, dilation, padding, stride)
    x = _batched(input, 4)
    batch, channels, *sizes = x.shape
    counts = _counts(tuple(sizes), kernel, dilations, paddings, steps)
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {_shown(sizes)}, kernel_size={_shown(kernel)}, "
            f"dilation={_shown(dilations)}, padding={_shown(paddings)}, calculated shape of the array of sliding "
            f"blocks as {_shown([max(c, 0) for c in counts])}, but its components must be at least one."
        )
    if any(paddings):
        x = pad(x, (paddings[1], paddings[1], paddings[0], paddings[0]))
    for i in (0, 1):
        x = x.index_select(2 + i, _window_positions(kernel[i], dilations[i], steps[i], counts[i], x))
    windows = x.reshape((batch, channels, kernel[0], counts[0], kernel[1], counts[1])).permute((0, 1, 2, 4, 3, 5))
    out: Tensor = windows.reshape((batch, channels * kernel[0] * kernel[1], counts[0] * counts[1]))
    return out if input.ndim == 4 else out.squeeze(0)


@public(namespace="nn.functional")
def fold(
    input: Tensor,
    output_size: Sizes,
    kernel_size: Sizes,
    dilation: Sizes = 1,
    padding: Sizes = 0,
    stride: Sizes = 1,
) -> Tensor:
    """The adjoint of :func:`unfold`: adds the values of (N, C * kH * kW, windows) at their positions."""
    kernel, dilations, paddings, steps = _geometry(kernel_size, dilation, padding, stride)
    sizes = per_dim(output_size, 2)
    if sizes is None:
        raise RuntimeError(f"It is expected output_size equals to 2, but got size {len(output_size)}")  # type: ignore[arg-type]
    x = _batched(input, 3)
    batch, rows, columns = x.shape
    area = kernel[0] * kernel[1]
    if rows % area:
        raise RuntimeError(
            f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={rows} and kernel_size={_shown(kernel)}."
        )
    counts = _counts(sizes, kernel, dilations, paddings, steps)
    if min(counts) < 1 or counts[0] * counts[1] != columns:
        shown = " * ".join(map(str, counts))
        raise RuntimeError(
            f"Given output_size={_shown(sizes)}, kernel_size={_shown(kernel)}, dilation={_shown(dilations)}, "
            f"padding={_shown(paddings)}, stride={_shown(steps)}, expected size of input's dimension 2 to match the "
            f"calculated number of sliding blocks {shown} = {counts[0] * counts[1]}, but got input.size(2)={columns}."
        )
    channels = rows // area
    windows = x.reshape((batch, channels, *kernel, *counts)).permute((0, 1, 2, 4, 3, 5))
    x = windows.reshape((batch, channels, kernel[0] * counts[0], kernel[1] * counts[1]))
    for i in (0, 1):
        shape = list(x.shape)
        shape[2 + i] = sizes[i] + 2 * paddings[i]
        zeros = x.new_zeros(shape)
        x = zeros.index_add(2 + i, _window_positions(kernel[i], dilations[i], steps[i], counts[i], x), x)
        x = x.narrow(2 + i, paddings[i], sizes[i])
    out: Tensor = x.contiguous()
    return out if input.ndim == 3 else out.squeeze(0)


# -- averages ---------------------------------------------------------------------------------------------------------
def _lp_pool(
    rank: int, average: Callable[..., Any], largest: Callable[..., Any], input: Tensor, norm_type: float,
    kernel_size: Any, stride: Any, ceil_mode: bool,
) -> Tensor:  # fmt: skip
    out: Tensor
    if abs(norm_type) == float("inf"):
        sign = 1 if norm_type > 0 else -1
        out = largest(input.abs() * sign, kernel_size, stride, 0, 1, ceil_mode) * sign
        return out
    count = 1
    for size in per_dim(kernel_size, rank) or ():
        count *= size
    mean = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    # As in PyTorch, odd powers keep their sign up to here, and the root of a negative sum is NaN.
    out = (mean.sign() * mean.abs().relu() * count).pow(1.0 / norm_type)
    return out


@public(namespace="nn.functional")
def lp_pool1d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The p-th root of the sum of p-th powers in each window of (N, C, L) or (C, L)."""
    return _lp_pool(1, avg_pool1d, max_pool1d, input, norm_type, kernel_size, stride, ceil_mode)


@public(namespace="nn.functional")
def lp_pool2d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The p-th root of the sum of p-th powers in each window of (N, C, H, W) or (C, H, W)."""
    return _lp_pool(2, avg_pool2d, max_pool2d, input, norm_type, kernel_size, stride, ceil_mode)


@public(namespace="nn.functional")
def lp_pool3d(
    input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False
) -> Tensor:
    """The p-th root of the sum of p-th powers in each window of (N, C, D, H, W) or (C, D, H, W)."""
    return _lp_pool(3, avg_pool3d, max_pool3d, input, norm_type, kernel_size, stride, ceil_mode)


@public(namespace="nn.functional")
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """``input / (k + alpha * mean) ** beta``, with the mean of squares over ``size`` neighboring channels of (N, C, *).

    Channels beyond the first and last count as zeros. Krizhevsky, Sutskever and Hinton, 2012.
    """
    shape = tuple(input.shape)
    if len(shape) < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {len(shape)} dimensions)")
    if not input.numel():
        return input
    squares = (input * input).reshape((shape[0], 1, shape[1], -1))
    padded = pad(squares, (0, 0, size // 2, (size - 1) // 2))
    mean = avg_pool2d(padded, (size, 1), 1).reshape(shape)
    out: Tensor = input / (mean * alpha + k).pow(beta)
    return out
