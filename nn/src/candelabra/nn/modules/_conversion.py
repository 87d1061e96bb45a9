"""Moving a module's parameters and buffers to devices, and casting them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import candelabra as cd
from candelabra import Tensor, no_grad
from candelabra.dtypes import bfloat16, dtype, float16, float32, float64
from candelabra.nn.modules._traversal import Traversable


class Convertible(Traversable):
    """The methods of a Module that change the device and the dtype of its tensors."""

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace the data of every parameter, gradient and buffer by ``fn(data)``.

        The tensor objects stay the same, so an optimizer's references to parameters remain valid.
        """
        for module in self.modules() if recurse else (self,):
            for tensor in (*module._parameters.values(), *module._buffers.values()):
                if tensor is None:
                    continue
                with no_grad():
                    _replace_data(tensor, fn)
                    if tensor.grad is not None:
                        gradient = tensor.grad
                        _replace_data(gradient, fn)
        return self

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to a device without copying: the values of all parameters and buffers are then uninitialized."""
        return self._apply(lambda t: cd.empty_like(t, device=device), recurse)

    def share_memory(self) -> Self:
        """Move all tensors to memory that other processes can share; see ``Tensor.share_memory_``."""
        return self._apply(lambda t: t.share_memory_())

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move to a device, cast floating parameters and buffers to a dtype, or take both from a tensor.

        ``to(device=None, dtype=None, non_blocking=False)``, ``to(dtype)``, ``to(tensor)``, ``to(memory_format=…)``, of
        which the last changes the layout of 4-d and 5-d tensors. In place. Raises ``TypeError`` for integer dtypes.
        """
        memory_format = kwargs.pop("memory_format", None)
        device, target = _parse_to(args, kwargs)
        if target is not None and not (target.is_floating_point or target.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={target}"
            )

        def convert(tensor: Any) -> Any:
            floating = tensor.is_floating_point() or tensor.is_complex()
            moved = tensor.to(device=device, dtype=target if floating else None)
            if memory_format is None or tensor.dim() not in (4, 5):
                return moved
            return moved.contiguous(memory_format=memory_format)

        return self._apply(convert)

    def _cast(self, target: dtype) -> Self:
        return self._apply(lambda t: t.to(target) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Cast floating parameters and buffers to float32."""
        return self._cast(float32)

    def double(self) -> Self:
        """Cast floating parameters and buffers to float64."""
        return self._cast(float64)

    def half(self) -> Self:
        """Cast floating parameters and buffers to float16."""
        return self._cast(float16)

    def bfloat16(self) -> Self:
        """Cast floating parameters and buffers to bfloat16."""
        return self._cast(bfloat16)

    def type(self, dst_type: dtype) -> Self:
        """Cast all parameters and buffers, integers too."""
        return self._apply(lambda t: t.to(dst_type))

    def cpu(self) -> Self:
        """Move to the host's device."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move to a CUDA device. A backend for CUDA has to be installed."""
        return self._apply(lambda t: t.cuda() if device is None else t.cuda(device))

    def ipu(self, device: Any = None) -> Self:
        """Move to an IPU. A backend for IPUs has to be installed."""
        return self._apply(lambda t: t.ipu() if device is None else t.ipu(device))

    def xpu(self, device: Any = None) -> Self:
        """Move to an Intel GPU. A backend for the device type ``xpu`` has to be installed."""
        return self._apply(lambda t: t.xpu() if device is None else t.xpu(device))

    def mtia(self, device: Any = None) -> Self:
        """Move to an MTIA accelerator. A backend for it has to be installed."""
        return self._apply(lambda t: t.mtia() if device is None else t.mtia(device))


def _replace_data(tensor: Tensor, fn: Callable[[Any], Any]) -> None:
    made = fn(tensor.data)
    if made._payload is not tensor._payload or made._keys != tensor.data._keys:
        tensor.data = made


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dtype | None]:
    """Return the device and the dtype given by ``to(device, dtype)``, ``to(dtype)`` or ``to(tensor)``."""
    named = dict(kwargs)
    named.pop("non_blocking", None)
    named.pop("copy", None)
    device, target, other = named.pop("device", None), named.pop("dtype", None), named.pop("tensor", None)
    if named:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(named))}'")
    for position, value in enumerate(args):
        if isinstance(value, Tensor):
            other = value
        elif isinstance(value, dtype):
            target = value
        elif isinstance(value, bool) and position:
            pass  # non_blocking
        elif position == 0:
            device = value
        elif value is not None:
            raise TypeError(f"to() received an invalid argument number {position + 1}: {value!r}")
    if other is not None:
        return other.device, other.dtype
    return device, target
