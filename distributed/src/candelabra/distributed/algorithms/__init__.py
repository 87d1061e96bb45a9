"""Algorithms over collectives: uneven inputs, and hooks for the communication of gradients."""

from __future__ import annotations

from candelabra.distributed.algorithms.join import Join as Join
from candelabra.distributed.algorithms.join import Joinable as Joinable
from candelabra.distributed.algorithms.join import JoinHook as JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]


def __dir__() -> list[str]:
    return sorted(__all__)
