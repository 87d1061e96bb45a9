"""Optimizers whose state is divided among ranks."""

from __future__ import annotations

from candelabra.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]


def __dir__() -> list[str]:
    return sorted(__all__)
