"""Automatic mixed precision: ``autocast`` and ``GradScaler``, as ``torch.amp``."""

from __future__ import annotations

from candelabra.amp import autocast_mode as autocast_mode
from candelabra.amp import grad_scaler as grad_scaler
from candelabra.amp.autocast_mode import autocast as autocast
from candelabra.amp.autocast_mode import custom_bwd as custom_bwd
from candelabra.amp.autocast_mode import custom_fwd as custom_fwd
from candelabra.amp.autocast_mode import is_autocast_available as is_autocast_available
from candelabra.amp.grad_scaler import GradScaler as GradScaler

__all__ = [
    "autocast", "autocast_mode", "custom_bwd", "custom_fwd", "grad_scaler", "GradScaler", "is_autocast_available",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
