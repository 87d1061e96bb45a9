"""Hooks for ``DistributedDataParallel.register_comm_hook``: what travels instead of the plain gradients."""

from __future__ import annotations

from candelabra.distributed.algorithms.ddp_comm_hooks import default_hooks as default_hooks
from candelabra.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as powerSGD_hook

__all__ = ["default_hooks", "powerSGD_hook"]


def __dir__() -> list[str]:
    return sorted(__all__)
