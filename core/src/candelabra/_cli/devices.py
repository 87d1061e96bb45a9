"""``candelabra devices``: one line per device, with the facts that its backend gives."""

from __future__ import annotations

import argparse

from candelabra._plugins import registry
from candelabra.backend import Fact
from candelabra.errors import BackendError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(arguments: argparse.Namespace) -> int:
    """Print the devices; 1 when a backend failed or there is no device at all."""
    lines: list[str] = []
    status = 0
    for plugin in registry.plugins().values():
        try:
            backend, _ = registry.load(plugin)
            found = backend.devices()
        except BackendError as error:
            lines.append(f"{plugin.name}: {error}")
            status |= plugin.error is not None
            continue
        except Exception as error:
            lines.append(f"{plugin.name}: {type(error).__name__}: {error}")
            status = 1
            continue
        for index, info in enumerate(found):
            facts = "".join(f", {shown(key, value)}" for key, value in info.facts.items())
            lines.append(f"{plugin.name}:{index}  {info.name}{facts}")
        if not found:
            lines.append(f"{plugin.name}: no devices")
    print("\n".join(lines) if lines else registry.nothing_installed())
    return int(status or not lines)


def shown(key: str, value: Fact) -> str:
    """One fact in words: sizes of memory in GiB, versions of numbers with dots."""
    words = key.replace("_", " ")
    if key.endswith("memory") and isinstance(value, int):
        return f"{words} {value / 2**30:.1f} GiB"
    if isinstance(value, tuple):
        return f"{words} {'.'.join(map(str, value))}"
    return words if value is True else f"{words} {value}"
