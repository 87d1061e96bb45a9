"""The configuration of this installation as text, for reports."""

from __future__ import annotations

import platform
import sys

from candelabra._plugins import registry
from candelabra._switches import get_num_interop_threads, get_num_threads
from candelabra._version import __version__


def show() -> str:
    """Return the versions of candelabra and Python, and the installed plugins with their distributions."""
    lines = [
        f"candelabra {__version__}",
        f"  - Python {platform.python_version()} on {sys.platform}, {platform.machine()}",
        *(f"  - device type {name!r}" for name in registry.plugins()),
    ]
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """Return the numbers of threads."""
    return (
        f"candelabra.get_num_threads() : {get_num_threads()}\n"
        f"candelabra.get_num_interop_threads() : {get_num_interop_threads()}\n"
    )


__all__ = ["parallel_info", "show"]


def __dir__() -> list[str]:
    return sorted(__all__)
