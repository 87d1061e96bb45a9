"""Operations between DTensors and plain tensors, as ``torch.distributed.tensor.experimental``."""

from __future__ import annotations

from candelabra.distributed.tensor._operations import implicit_replication as implicit_replication

__all__ = ["implicit_replication"]


def __dir__() -> list[str]:
    return sorted(__all__)
