"""Modules without initialization."""

from __future__ import annotations

from inspect import signature
from typing import Any

from candelabra.library import get_default_device
from candelabra.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Any:
    """Return ``module_cls(*args, **kwargs)`` with uninitialized parameters and buffers.

    The class must have an argument ``device`` and pass it to its tensors. Raises ``RuntimeError`` for other classes.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", None) or get_default_device()
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)


def __dir__() -> list[str]:
    return sorted(__all__)
