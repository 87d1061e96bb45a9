"""Training in several processes, which needs a package that does not exist yet."""

from __future__ import annotations

from typing import Any

from candelabra.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Raises ``RuntimeError``: communication between processes is not available yet."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "DistributedDataParallel needs candelabra.distributed, which is not available yet; "
            "nn.DataParallel uses several devices in one process"
        )


def __dir__() -> list[str]:
    return sorted(__all__)
