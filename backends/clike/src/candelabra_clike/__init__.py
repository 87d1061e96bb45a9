"""Kernels in C for devices with a C-like language: expressions, loop nests, and one dialect per language.

A device implements an :class:`~candelabra_clike.engine.Engine`, that is memory and a compiler, and gets a kernel table.
The public names are imported at their first use, since a table can be made without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from candelabra_clike.array import StridedArray
    from candelabra_clike.backend import CLikeBackend
    from candelabra_clike.dialect import Dialect
    from candelabra_clike.dialects import CUDA, OPENCL, C
    from candelabra_clike.engine import Engine, Launch, Traits
    from candelabra_clike.source import Source

_MODULES: Final[dict[str, str]] = {
    "StridedArray": "array", "CLikeBackend": "backend", "Dialect": "dialect", "C": "dialects", "CUDA": "dialects",
    "OPENCL": "dialects", "Engine": "engine", "Launch": "engine", "Traits": "engine", "Source": "source",
}  # fmt: skip
"""Public name → its module."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


__all__ = ["C", "CLikeBackend", "CUDA", "Dialect", "Engine", "Launch", "OPENCL", "Source", "StridedArray", "Traits"]
