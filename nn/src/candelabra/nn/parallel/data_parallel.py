"""A module whose batches are divided among several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra import is_grad_enabled
from candelabra.nn.modules.module import Module
from candelabra.nn.parallel._devices import chosen, resolved
from candelabra.nn.parallel.parallel_apply import parallel_apply
from candelabra.nn.parallel.replicate import replicate
from candelabra.nn.parallel.scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Divides each batch along ``dim`` among devices, with a copy of the module on each.

    The module is called on the parts at the same time; its outputs are joined on ``output_device``, by default the
    first device. Gradients add up in the module's parameters, which must be on the first device. Without
    ``device_ids`` on a machine with at most one accelerator, the module is called as it is, on its own device.
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        self.dim = dim
        self.module = module
        self.device_ids: list[Any] = chosen(device_ids)
        if not self.device_ids:
            return
        self.output_device = self.device_ids[0] if output_device is None else resolved(output_device)
        self.src_device_obj = self.device_ids[0]
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_devices(self.module, self.src_device_obj)
        args, named = self.scatter(inputs, kwargs, self.device_ids)
        if not args:
            args, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*args[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(args)])
        return self.gather(self.parallel_apply(replicas, args, named), self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Any]) -> list[Any]:
        """Return copies of a module; see :func:`replicate`."""
        return replicate(module, device_ids, not is_grad_enabled())

    def scatter(self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Any]) -> Any:
        """Divide the arguments of a call."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any) -> list[Any]:
        """Call the copies; see :func:`parallel_apply`."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """Join the outputs; see :func:`gather`."""
        return gather(outputs, output_device, dim=self.dim)


def _check_devices(module: Module, expected: Any) -> None:
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.device != expected:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {expected} (device_ids[0]) but found one of "
                f"them on device: {tensor.device}"
            )


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module once as :class:`DataParallel` does.

    ``inputs``: a tuple of arguments, or the only one; None for none.
    """
    args = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*args, **(module_kwargs or {}))


def __dir__() -> list[str]:
    return sorted(__all__)
