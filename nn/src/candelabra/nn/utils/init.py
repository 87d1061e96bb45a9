"""Modules without the cost of their initialization."""

from __future__ import annotations

import inspect
from typing import Any

import candelabra as cd

__all__ = ["skip_init"]


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``module_cls(*args, **kwargs)`` whose parameters and buffers have arbitrary values.

    The module is made on the device ``meta``, which has no memory, and moved to the argument ``device``. Raises
    ``RuntimeError`` if the class is no Module or does not take that argument.
    """
    from candelabra.nn.modules.module import Module

    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", None) or cd.get_default_device()
    construct: Any = module_cls
    return construct(*args, **kwargs, device="meta")._apply(lambda t: cd.empty_like(t, device=device))


def __dir__() -> list[str]:
    return sorted(__all__)
