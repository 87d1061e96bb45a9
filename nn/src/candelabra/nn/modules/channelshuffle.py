"""Channels mixed among groups."""

from __future__ import annotations

from candelabra import Tensor
from candelabra.nn import functional as F
from candelabra.nn.modules.module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """The channels of (N, C, *), taken from ``groups`` groups in turn (Zhang et al., ShuffleNet, 2018)."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


def __dir__() -> list[str]:
    return sorted(__all__)
