"""Device types that have a name before they have a plugin.

A program asks ``candelabra.<device type>.is_available()`` on machines where the answer is no. So that it gets that
answer, and not an AttributeError, a distribution may register the names of device types under the entry point group
``candelabra.device_names``: the entry's name is the device type, its value one of the two kinds below. The core's own
metadata registers those that programs commonly say; a vendor's package adds its own. Nothing is imported to read them.
See docs/notes/0002-device-names.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from candelabra._annotations import Final

GROUP: Final = "candelabra.device_names"
DISTRIBUTION: Final = "candelabra"


@dataclass(frozen=True)
class Kind:
    """What kind of device a name stands for."""

    name: str
    meaning: str


host: Final = Kind("host", "computes in the host's memory; what a first installation needs")
accelerator: Final = Kind("accelerator", "has memory of its own")


def registered_names() -> dict[str, str]:
    """``{device type: "host" | "accelerator"}`` as distributions register them, in alphabetical order."""
    from importlib.metadata import entry_points

    return {entry.name: entry.attr for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name)}


def extras() -> set[str]:
    """The extras that the core's own metadata offers."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        return set(metadata(DISTRIBUTION).get_all("Provides-Extra") or ())
    except PackageNotFoundError:
        return set()


def install_command(device_type: str | None = None) -> str:
    """What brings a device: ``pip install "candelabra[…]"``, for one type or, without one, for the host.

    Empty where the core's metadata offers no such extra.
    """
    offered = extras()
    if device_type is None:
        device_type = next((n for n, kind in registered_names().items() if kind == host.name and n in offered), None)
    return f'pip install "{DISTRIBUTION}[{device_type}]"' if device_type in offered else ""
