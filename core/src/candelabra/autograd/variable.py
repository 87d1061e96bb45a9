"""``Variable``, which is Tensor, under the name ``torch.autograd.variable``."""

from __future__ import annotations

from candelabra._tensor_types import Variable as Variable

__all__ = ["Variable"]


def __dir__() -> list[str]:
    return sorted(__all__)
