"""The version of candelabra, and of the device types that it was built for: None, since plugins have their own."""

from __future__ import annotations

from candelabra._annotations import Any
from candelabra._version import __version__ as __version__

debug = False
git_version: str | None = None
hip: str | None = None


def __getattr__(name: str) -> Any:
    from candelabra._device_attributes import is_device_type

    if name[0] == "_" or not is_device_type(name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return None  # plugins have versions of their own: candelabra.<device type>.get_device_properties()


__all__ = ["__version__", "debug", "git_version", "hip"]


def __dir__() -> list[str]:
    return sorted(__all__)
