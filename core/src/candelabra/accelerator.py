"""The accelerator of this machine, whatever its type: ``torch.accelerator``'s functions.

It is the first device type, in alphabetical order, that works and does not compute in the host's memory.
"""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._device import device
from candelabra._device_modules import DeviceLike, DeviceModule
from candelabra._plugins import registry
from candelabra.errors import DeviceUnavailable


def current_accelerator(check_available: bool = False) -> device | None:
    """The accelerator as a device without an index, or None. Only working ones count, whatever is asked."""
    for _, made in registry.working():
        if not made.capabilities.host and registry.device_count(made):
            return device(made.name)
    return None


def is_available() -> bool:
    """Whether there is an accelerator that can be used."""
    return current_accelerator() is not None


def device_count() -> int:
    """How many devices the accelerator's type has; 0 without one."""
    found = current_accelerator()
    return 0 if found is None else DeviceModule(found.type).device_count()


def _module() -> DeviceModule:
    found = current_accelerator()
    if found is None:
        raise DeviceUnavailable(
            "no accelerator is available: `candelabra doctor` says what was found and why it does not serve"
        )
    return DeviceModule(found.type)


def current_device_index() -> int:
    """The index of this thread's current device of that type. DeviceUnavailable without an accelerator."""
    return _module().current_device()


def set_device_index(device: DeviceLike) -> None:
    """Make a device of that type the current one in this thread."""
    _module().set_device(device)


def device_index(device: int | None) -> Any:
    """The current device inside a ``with`` block; None changes nothing."""
    module = _module()
    return module.device(module.current_device() if device is None else device)


def synchronize(device: DeviceLike = None) -> None:
    """Wait for all work given to the device."""
    _module().synchronize(device)


def empty_cache() -> None:
    """Give unused pooled memory back."""
    _module().empty_cache()


def memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """What the backend counts, in bytes."""
    return _module().memory_stats(device)


__all__ = [
    "current_accelerator", "current_device_index", "device_count", "device_index", "empty_cache", "is_available",
    "memory_stats", "set_device_index", "synchronize",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
