"""Exchange of memory with other libraries by DLPack, as ``torch.utils.dlpack``."""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._operators.creation.from_memory import from_dlpack as from_dlpack
from candelabra._tensor import Tensor


def to_dlpack(tensor: Tensor) -> Any:
    """Return a DLPack capsule over the tensor's memory, which another library can use once."""
    return tensor.__dlpack__()


__all__ = ["from_dlpack", "to_dlpack"]


def __dir__() -> list[str]:
    return sorted(__all__)
