"""Names of device types without an installed plugin.

Programs call ``candelabra.<device type>.is_available()`` also on machines without the device. So that the result is
False and not an AttributeError, a distribution may register names of device types in the entry point group
``candelabra.device_names``: the entry's name is the device type, its value one of the two kinds below. The core's
metadata registers the names that are common in programs; a vendor's package adds its own. Reading them imports nothing.
See docs/notes/0002-device-names.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from candelabra._annotations import Final
from candelabra._plugins.metadata import entry_points

GROUP: Final = "candelabra.device_names"
DISTRIBUTION: Final = "candelabra"


@dataclass(frozen=True)
class DeviceKind:
    """The kind of device that a name denotes."""

    name: str
    meaning: str


host: Final = DeviceKind("host", "computes in the host's memory; what a first installation needs")
accelerator: Final = DeviceKind("accelerator", "has memory of its own")


@cache
def registered_names() -> dict[str, str]:
    """Return the registered ``{device type: "host" | "accelerator"}``, in alphabetical order.

    Cached: metadata does not change while a program runs, and to read it takes as long as hundreds of calls.
    """
    return {entry.name: entry.attr for entry in sorted(entry_points(GROUP), key=lambda e: e.name)}


def extras() -> set[str]:
    """Return the extras in the core's metadata."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        return set(metadata(DISTRIBUTION).get_all("Provides-Extra") or ())
    except PackageNotFoundError:
        return set()


def install_command(device_type: str | None = None) -> str:
    """Return the command that installs a device type, by default the host: ``pip install "candelabra[…]"``.

    The result is empty if the core's metadata has no such extra.
    """
    offered = extras()
    if device_type is None:
        device_type = next((n for n, kind in registered_names().items() if kind == host.name and n in offered), None)
    return f'pip install "{DISTRIBUTION}[{device_type}]"' if device_type in offered else ""
