"""Rearrangements of channels: into space, back, and among groups. Each consists of views and one copy."""

from __future__ import annotations

from candelabra import contiguous_format
from candelabra.library import by, operator, shape_of
from candelabra.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from candelabra.typing import Tensor

Ints = tuple[int, ...]


def _check(name: str, shape: Ints, argument: str, factor: int) -> None:
    if len(shape) < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {argument}, but got {factor}")


def _copied(permuted: Tensor, shape: Ints) -> Tensor:
    """Return the tensor in another shape, in memory of its own: one copy, in C order."""
    return permuted.clone(memory_format=contiguous_format).reshape(shape)


def _shuffled_shape(input: Tensor, upscale_factor: int) -> Ints:
    r = upscale_factor
    _check("pixel_shuffle", shape_of(input), "upscale_factor", r)
    *lead, channels, height, width = shape_of(input)
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    return (*lead, channels // (r * r), height * r, width * r)


@operator(by(_shuffled_shape), method=False, aliases=("nn.functional.pixel_shuffle",), out=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C * r², H, W) as (*, C, H * r, W * r), where r is the factor: channels become pixels (Shi et al., 2016)."""
    r, shape = upscale_factor, _shuffled_shape(input, upscale_factor)
    n, (height, width) = input.ndim - 3, input.shape[-2:]
    split = input.reshape((*shape[:-2], r, r, height, width))
    return _copied(split.permute((*range(n), n, n + 3, n + 1, n + 4, n + 2)), shape)


def _unshuffled_shape(input: Tensor, downscale_factor: int) -> Ints:
    r = downscale_factor
    _check("pixel_unshuffle", shape_of(input), "downscale_factor", r)
    *lead, channels, height, width = shape_of(input)
    for name, dim, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={size} "
                f"is not divisible by {r}"
            )
    return (*lead, channels * r * r, height // r, width // r)


@operator(by(_unshuffled_shape), method=False, aliases=("nn.functional.pixel_unshuffle",), out=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of :func:`pixel_shuffle`: (*, C, H * r, W * r) as (*, C * r², H, W)."""
    r, shape = downscale_factor, _unshuffled_shape(input, downscale_factor)
    n, (height, width) = input.ndim - 3, shape[-2:]
    split = input.reshape((*input.shape[:-2], height, r, width, r))
    return _copied(split.permute((*range(n), n, n + 2, n + 4, n + 1, n + 3)), shape)


def _grouped_shape(input: Tensor, groups: int) -> Ints:
    shape = shape_of(input)
    if len(shape) < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )
    return shape


@operator(by(_grouped_shape), method=False, out=False, aliases=(
    "nn.functional.channel_shuffle", "native_channel_shuffle", "nn.functional.native_channel_shuffle",
))  # fmt: skip
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of (N, C, *), taken from ``groups`` groups in turn (Zhang et al., ShuffleNet, 2018)."""
    shape = _grouped_shape(input, groups)
    grouped = input.reshape((shape[0], groups, shape[1] // groups, *shape[2:]))
    return _copied(grouped.transpose(1, 2), shape)
