"""The functions of ``torch.accelerator``, for an accelerator of any type.

The accelerator is the first working device type, in alphabetical order, that does not compute in the host's memory.
"""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._device import device
from candelabra._device_attributes import DeviceLike
from candelabra._device_modules import DeviceModule
from candelabra._plugins import registry
from candelabra.errors import DeviceUnavailable


def current_accelerator(check_available: bool = False) -> device | None:
    """Return the accelerator, a device without index, or None. Only available devices count, for any argument."""
    for _, made in registry.working():
        if not made.capabilities.host and registry.device_count(made):
            return device(made.name)
    return None


def is_available() -> bool:
    """Return whether an accelerator can be used."""
    return current_accelerator() is not None


def device_count() -> int:
    """Return the number of devices of the accelerator's type; 0 without an accelerator."""
    found = current_accelerator()
    return 0 if found is None else DeviceModule(found.type).device_count()


def _module() -> DeviceModule:
    found = current_accelerator()
    if found is None:
        raise DeviceUnavailable("no accelerator is available: `candelabra doctor` shows the plugins and the reasons")
    return DeviceModule(found.type)


def current_device_index() -> int:
    """Return the index of this thread's current device. Raise DeviceUnavailable without an accelerator."""
    return _module().current_device()


def set_device_index(device: DeviceLike) -> None:
    """Make a device of the accelerator's type the current one in this thread."""
    _module().set_device(device)


current_device_idx = current_device_index
set_device_idx = set_device_index


def device_index(device: int | None) -> Any:
    """Return a context manager that sets the current device; None has no effect."""
    module = _module()
    return module.device(module.current_device() if device is None else device)


def synchronize(device: DeviceLike = None) -> None:
    """Wait for all submitted work of the device."""
    _module().synchronize(device)


def empty_cache() -> None:
    """Release unused pooled memory."""
    _module().empty_cache()


def memory_stats(device: DeviceLike = None) -> dict[str, int]:
    """Return the backend's memory counters, in bytes."""
    return _module().memory_stats(device)


def memory_allocated(device: DeviceLike = None) -> int:
    """Return the current number of bytes in tensors, or 0 if the backend does not count."""
    return _module().memory_allocated(device)


def max_memory_allocated(device: DeviceLike = None) -> int:
    """Return the maximum number of bytes in tensors since the start of the process or since
    :func:`reset_peak_memory_stats`, or 0 if the backend does not count.
    """
    return _module().max_memory_allocated(device)


def memory_reserved(device: DeviceLike = None) -> int:
    """Return the number of bytes that the backend holds, or 0 if it does not count."""
    return _module().memory_reserved(device)


def max_memory_reserved(device: DeviceLike = None) -> int:
    """Return the maximum number of bytes that the backend held, or 0 if it does not count."""
    return _module().max_memory_reserved(device)


def reset_peak_memory_stats(device: DeviceLike = None) -> None:
    """Let the peak of allocated memory be what is allocated now.

    Warns once if the backend keeps the peak since the start of the process.
    """
    _module().reset_peak_memory_stats(device)


def get_device_capability(device: DeviceLike = None) -> dict[str, Any]:
    """Return ``{"supported_dtypes": {...}}``, the dtypes that the device computes in."""
    return {"supported_dtypes": set(_module()._instance(device).capabilities.arithmetic)}


def current_stream(device: DeviceLike = None) -> Any:
    """Return this thread's current stream. Raise NotImplementedError if the backend has no streams."""
    return _module().current_stream(device)


__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "get_device_capability", "is_available", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "reset_peak_memory_stats",
    "set_device_idx", "set_device_index", "synchronize",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
