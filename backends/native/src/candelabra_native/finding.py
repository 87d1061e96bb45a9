"""Find the compiled code of a kernel: in the pack, in the cache on disk, or by the compiler, if the user allows it."""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from pathlib import Path
from typing import Final

from candelabra_clike import Source
from candelabra_clike.cache import cache_folder

from candelabra_native import compiling
from candelabra_native.processor import level

COMPILE: Final = "CANDELABRA_COMPILE"
"""The environment variable that allows compiling at run time (1) or forbids it (0)."""


class Missing(Exception):
    """A kernel that is not compiled and must not be: NumPy serves the call."""


def may_compile() -> bool:
    """Return whether kernels may be compiled at run time."""
    return os.environ.get(COMPILE, "0") not in ("", "0") and compiling.compiler() is not None


def find(source: Source) -> int:
    """Return the address of a kernel's entry point. Raises :class:`Missing`, or ``BackendError`` from the compiler."""
    name = compiling.kernel_name(source)
    if may_compile():
        processor = level()
        assert processor is not None
        path = folder() / processor / f"{name}.so"
        if not path.exists():
            compiling.compile_unit([source], processor, path)
        return address(path, name)
    raise Missing(source.name)


@lru_cache(1)
def folder() -> Path:
    """Return the folder of the kernels that this machine compiled with today's compiler."""
    from candelabra_clike.cache import ProgramCache

    return cache_folder("native") / ProgramCache.key(compiling.version())[:16]


def address(path: Path, name: str) -> int:
    """Load a shared library, and return the address of a function. Libraries stay loaded."""
    return ctypes.cast(getattr(_library(path), name), ctypes.c_void_p).value or 0


@lru_cache(None)
def _library(path: Path) -> ctypes.CDLL:
    return ctypes.CDLL(os.fspath(path))
