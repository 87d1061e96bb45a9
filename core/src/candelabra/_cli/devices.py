"""``candelabra devices``: print one line per device, with the facts that its backend reports."""

from __future__ import annotations

import argparse

from candelabra._device import named_device
from candelabra._plugins import registry
from candelabra.errors import BackendError, DeviceUnavailable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Print the devices. Return 1 if a backend failed or no device exists, else 0."""
    lines: list[str] = []
    status = 0
    for plugin in registry.plugins().values():
        try:
            backend, _ = registry.load(plugin)
            found = backend.devices()
        except BackendError as error:
            lines.append(f"{plugin.name}: {error}")
            status |= not isinstance(error, DeviceUnavailable)
            continue
        except Exception as error:
            lines.append(f"{plugin.name}: {type(error).__name__}: {error}")
            status = 1
            continue
        for index, info in enumerate(found):
            lines.append(f"{named_device(backend, index, len(found))}  {info.line}")
        if not found:
            lines.append(f"{plugin.name}: no devices")
    print("\n".join(lines) if lines else registry.nothing_installed())
    return int(status or not lines)
