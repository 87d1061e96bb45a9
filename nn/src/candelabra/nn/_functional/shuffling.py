"""Channels moved into space, back, and among themselves, as in ``torch.nn.functional``: views and one copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from candelabra.library import public

if TYPE_CHECKING:
    from candelabra import Tensor


def _check(name: str, input: Tensor, argument: str, factor: int) -> None:
    if input.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {argument}, but got {factor}")


@public(method=False)
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C * r², H, W) as (*, C, H * r, W * r), r the factor: channels become pixels (Shi et al., 2016)."""
    r = upscale_factor
    _check("pixel_shuffle", input, "upscale_factor", r)
    *lead, channels, height, width = input.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    n, c = len(lead), channels // (r * r)
    split = input.reshape((*lead, c, r, r, height, width))
    moved = split.permute((*range(n), n, n + 3, n + 1, n + 4, n + 2))
    out: Tensor = moved.reshape((*lead, c, height * r, width * r))
    return out


@public(method=False)
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of :func:`pixel_shuffle`: (*, C, H * r, W * r) as (*, C * r², H, W)."""
    r = downscale_factor
    _check("pixel_unshuffle", input, "downscale_factor", r)
    *lead, channels, height, width = input.shape
    for name, place, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({place})={size} "
                f"is not divisible by {r}"
            )
    n = len(lead)
    split = input.reshape((*lead, channels, height // r, r, width // r, r))
    moved = split.permute((*range(n), n, n + 2, n + 4, n + 1, n + 3))
    out: Tensor = moved.reshape((*lead, channels * r * r, height // r, width // r))
    return out


@public(method=False)
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of (N, C, *) dealt out from ``groups`` groups in turn (Zhang et al., ShuffleNet, 2018)."""
    shape = tuple(input.shape)
    if len(shape) < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )
    grouped = input.reshape((shape[0], groups, shape[1] // groups, *shape[2:]))
    out: Tensor = grouped.transpose(1, 2).reshape(shape)
    return out
