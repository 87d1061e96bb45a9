"""Copies of a module on several devices, whose gradients add up in the original."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra.nn.modules.module import Module
from candelabra.nn.parallel._devices import resolved

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """Return one copy of a module per device.

    Their parameters are copies of the original ones, through which gradients flow to it, unless ``detach``. On the
    original's own device, buffers are shared, so a layer's running statistics continue to be updated.
    """
    return [_replica(network, resolved(each), detach) for each in devices]


def _replica(network: Module, where: Any, detach: bool) -> Any:
    tensors: dict[int, Any] = {}

    def moved(tensor: Any, keep_graph: bool) -> Any:
        if id(tensor) not in tensors:  # tied weights remain tied
            tensors[id(tensor)] = (tensor if keep_graph else tensor.detach()).to(where)
        return tensors[id(tensor)]

    replicas = {id(module): module._replicate_for_data_parallel() for module in network.modules()}
    for module in network.modules():
        members = replicas[id(module)].__dict__
        members["_former_parameters"] = {}
        for name, child in module._modules.items():
            members["_modules"][name] = None if child is None else replicas[id(child)]
        for name, parameter in module._parameters.items():
            if parameter is None:
                members["_parameters"][name] = None
            else:  # the copy is no leaf, so it is a plain attribute
                members[name] = members["_former_parameters"][name] = moved(parameter, not detach)
        for name, buffer in module._buffers.items():
            if buffer is not None:
                members["_buffers"][name] = moved(buffer, buffer.requires_grad and not detach)
    return replicas[id(network)]


def __dir__() -> list[str]:
    return sorted(__all__)
