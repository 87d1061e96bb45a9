"""The devices that a list of ``device_ids`` names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from candelabra import accelerator, device


def resolved(value: Any) -> device:
    """Return a device: a name, a device, or an index of the accelerator's devices."""
    if isinstance(value, device):
        return device(value.type, value.index or 0)
    if isinstance(value, str):
        return resolved(device(value))
    found = accelerator.current_accelerator()
    if found is None:
        raise RuntimeError(f"device index {value} needs an accelerator, but none is available; pass a device instead")
    return device(found.type, int(value))


def chosen(device_ids: Sequence[Any] | None) -> list[device]:
    """Return the devices of a list, or all of the accelerator if it has several."""
    if device_ids is not None:
        return [resolved(value) for value in device_ids]
    count = accelerator.device_count()
    return [resolved(index) for index in range(count)] if count > 1 else []
