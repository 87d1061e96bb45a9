"""Modes of recording, under the name ``torch.autograd.grad_mode``."""

from __future__ import annotations

from candelabra._autograd.modes import enable_grad as enable_grad
from candelabra._autograd.modes import inference_mode as inference_mode
from candelabra._autograd.modes import no_grad as no_grad
from candelabra._autograd.modes import set_grad_enabled as set_grad_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"]


def __dir__() -> list[str]:
    return sorted(__all__)
