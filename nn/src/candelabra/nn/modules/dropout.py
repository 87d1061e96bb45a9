"""Dropout: random zeros in training (Hinton et al., 2012)."""

from __future__ import annotations

from typing import Any

from candelabra.nn import functional as F
from candelabra.nn.modules.module import Module

__all__ = ["Dropout", "Dropout1d", "Dropout2d", "Dropout3d"]


class Dropout(Module):
    """In training, sets elements to 0 with probability ``p`` and divides the others by 1 - p.

    In evaluation it returns the input.

    Raises ``ValueError`` for a probability outside of [0, 1].
    """

    _drop: Any = staticmethod(F.dropout)

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Any) -> Any:
        return type(self)._drop(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout1d(Dropout):
    """Dropout of whole channels of (N, C, L) or (C, L)."""

    _drop = staticmethod(F.dropout1d)


class Dropout2d(Dropout):
    """Dropout of whole channels of (N, C, H, W) or (C, H, W)."""

    _drop = staticmethod(F.dropout2d)


class Dropout3d(Dropout):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    _drop = staticmethod(F.dropout3d)


def __dir__() -> list[str]:
    return sorted(__all__)
