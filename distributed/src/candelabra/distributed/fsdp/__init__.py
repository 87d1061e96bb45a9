"""Sharded training: ``fully_shard``, as PyTorch's FSDP2 (Rajbhandari et al., ZeRO, 2020; Zhao et al., 2023)."""

from __future__ import annotations

from candelabra.distributed.fsdp._fully_shard import FSDPModule as FSDPModule
from candelabra.distributed.fsdp._fully_shard import fully_shard as fully_shard
from candelabra.distributed.fsdp._policies import MixedPrecisionPolicy as MixedPrecisionPolicy
from candelabra.distributed.fsdp._policies import OffloadPolicy as OffloadPolicy

__all__ = ["FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "fully_shard"]


def __dir__() -> list[str]:
    return sorted(__all__)
