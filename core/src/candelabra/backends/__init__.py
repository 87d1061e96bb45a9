"""Switches of devices and libraries that PyTorch's programs read and set: ``backends.cudnn.benchmark = True``.

``backends.<device type>`` exists for every device type, and says whether it is available. The libraries that PyTorch is
built with are no part of candelabra: they are not available, and their switches keep what a program sets and have no
effect. ``allow_tf32`` is the exception: it is :func:`candelabra.set_float32_matmul_precision`.
"""

from __future__ import annotations

from types import ModuleType

from candelabra._annotations import Any, Final
from candelabra.backends import _libraries
from candelabra.backends._devices import switches_of

_MADE: Final[dict[str, ModuleType]] = {}


def __getattr__(name: str) -> Any:
    if name in _libraries.LIBRARIES:
        return _MADE.setdefault(name, _libraries.library(name))
    found = None if name[0] == "_" else switches_of(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


__all__ = list(_libraries.LIBRARIES)


def __dir__() -> list[str]:
    return sorted(__all__)
