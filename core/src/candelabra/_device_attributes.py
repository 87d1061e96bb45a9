"""A tensor's attributes for device types: the method ``x.<type>()`` and the flag ``x.is_<type>``."""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._device import device, open_device
from candelabra._plugins import names, registry

if TYPE_CHECKING:
    from candelabra._device import Instance
    from candelabra._tensor import Tensor

DeviceLike = device | str | int | None


def is_device_type(name: str) -> bool:
    """Return whether ``name`` is a device type, by a plugin or a registered name."""
    return name in names.registered_names() or name in registry.plugins()


def instance_of_type(device_type: str, name: DeviceLike) -> Instance:
    """Return the device of a type that an index or a name means, by default the current one, and open it.

    Raises ``ValueError`` for a device of another type.
    """
    if name is None:
        return open_device(device(device_type))
    found = device(device_type, name) if isinstance(name, int) else device(name)
    if found.type != device_type:
        raise ValueError(f"Expected a {device_type} device, but got: {found}")
    return open_device(found)


def tensor_attribute(tensor: Tensor, name: str) -> Any:
    """Return a tensor's attribute for a device type, the method ``x.<type>`` or the flag ``x.is_<type>``, or None."""
    if name.startswith("is_") and is_device_type(name[3:]):
        return tensor.device.type == name[3:]
    return _mover(tensor, name) if is_device_type(name) else None


def _mover(tensor: Tensor, device_type: str) -> Callable[..., Tensor]:
    def move(device: DeviceLike = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        moved: Tensor = tensor.to(instance_of_type(device_type, device).device, non_blocking=non_blocking)
        return moved

    move.__name__ = move.__qualname__ = device_type
    move.__doc__ = f"This tensor on a device of type {device_type!r}: itself where it is there already, else a copy."
    return move
