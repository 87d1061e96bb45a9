"""The memory format of the weights of convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def convert_conv2d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Give the weights of all Conv2d and ConvTranspose2d in a module a memory format, in place. Return the module."""
    from candelabra.nn.modules.conv import Conv2d, ConvTranspose2d

    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: Any) -> Module:
    """Give the weights of all Conv3d and ConvTranspose3d in a module a memory format, in place. Return the module."""
    from candelabra.nn.modules.conv import Conv3d, ConvTranspose3d

    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)


def _convert(module: Module, kinds: tuple[type, ...], memory_format: Any) -> Module:
    for part in module.modules():
        if isinstance(part, kinds):
            weight: Any = part.weight
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def __dir__() -> list[str]:
    return sorted(__all__)
