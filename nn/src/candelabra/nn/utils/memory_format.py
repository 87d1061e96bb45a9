"""The memory format of the weights of convolutions."""

from __future__ import annotations

from typing import Any

from candelabra.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Convert the weights of all Conv2d and ConvTranspose2d in a module, and return it."""
    return _converted(module, ("Conv2d", "ConvTranspose2d"), memory_format)


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Convert the weights of all Conv3d and ConvTranspose3d in a module, and return it."""
    return _converted(module, ("Conv3d", "ConvTranspose3d"), memory_format)


def _converted(module: Module, names: tuple[str, ...], memory_format: Any) -> Module:
    for each in module.modules():
        if any(cls.__name__ in names for cls in type(each).__mro__):
            weight: Any = each.weight
            weight.data = weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def __dir__() -> list[str]:
    return sorted(__all__)
