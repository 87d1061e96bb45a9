"""The libraries of the pack at run time: one per processor level, with an entry point per kernel."""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent


def path(level: str, folder: Path = FOLDER) -> Path:
    """Return the file of a level's library, whether there is one or not."""
    return folder / f"kernels_{level}.so"


@lru_cache(None)
def library(file: Path) -> ctypes.CDLL | None:
    """Return a loaded library, or None if there is no such file. Libraries stay loaded."""
    return ctypes.CDLL(os.fspath(file)) if file.exists() else None


def entry_point(file: Path, name: str) -> int | None:
    """Return the address of a function of a library, or None if the file or the function does not exist."""
    loaded = library(file)
    if loaded is None:
        return None
    try:
        function = getattr(loaded, name)
    except AttributeError:
        return None
    return ctypes.cast(function, ctypes.c_void_p).value


def built(folder: Path = FOLDER) -> list[str]:
    """Return the levels that the pack has a library for."""
    return sorted(file.stem.removeprefix("kernels_") for file in folder.glob("kernels_*.so"))
