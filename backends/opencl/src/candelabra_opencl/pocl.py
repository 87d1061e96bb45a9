"""PoCL's own cache of compiled kernels: where it is, and a guard over it.

PoCL keeps what it compiles, and loads what it finds again as it is: a file that was cut or changed ends the process.
So it gets a folder of its own here. When a process ends it notes size and time of each file, and before PoCL is woken
the entries go in which a file is not as it was noted. Those that nobody has noted, because their process was killed or
still runs, are looked at themselves. What goes is compiled again.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final

from candelabra_clike.cache import VARIABLE, cache_folder, write_atomically

from candelabra_opencl.icd import setting

FOLDER: Final = "POCL_CACHE_DIR"
WANTED: Final = "POCL_KERNEL_CACHE"
NOTES: Final = "noted.json"
KEPT: Final = (".so", ".bc")
"""What PoCL loads. Its other files are times and texts."""
BITCODE: Final = b"BC\xc0\xde"
LIBRARIES: Final = (b"\x7fELF", b"\xcf\xfa\xed\xfe")
"""How a library begins, on Linux and on macOS."""
ELF: Final = b"\x7fELF\x02\x01"
"""One for Linux with 64 bits, the lower byte first: of these we know how long they have to be."""

Files = dict[str, list[int]]
"""Size and time of change (ns) of each file, by its path within the entry."""


@contextmanager
def cache_shown() -> Iterator[None]:
    """While OpenCL's devices are asked for the first time: PoCL reads there where it may keep what it compiles.

    Who says so in the environment has the last word, and a folder without a guard.
    """
    if os.environ.get(FOLDER) or os.environ.get(WANTED):
        yield
    elif os.environ.get(VARIABLE) == "0":
        with setting(WANTED, "0"):
            yield
    else:
        with setting(FOLDER, str(guarded(cache_folder("opencl") / "pocl").folder)):
            yield


@lru_cache(None)
def guarded(folder: Path) -> Guard:
    """The folder with a guard over it from here to the end of the process."""
    guard = Guard(folder)
    guard.check()
    atexit.register(guard.note)
    return guard


class Guard:
    """The entries in PoCL's folder: one of each program, two levels down."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder

    def check(self) -> None:
        """Take away what PoCL must not load."""
        noted = self._noted()
        for entry in self._entries():
            files = noted.get(entry)
            place = f"{self.folder}/{entry}"
            if not (all_whole(place) if files is None else unchanged(place, files)):
                shutil.rmtree(place, ignore_errors=True)

    def note(self) -> None:
        """Note the files of entries that are new, and forget those that are gone."""
        noted = self._noted()
        now = {entry: noted.get(entry) or found(f"{self.folder}/{entry}") for entry in self._entries()}
        if now != noted:
            try:
                write_atomically(self.folder / NOTES, json.dumps(now).encode())
            except OSError:
                return

    def _noted(self) -> dict[str, Files]:
        try:
            noted: dict[str, Files] = json.loads((self.folder / NOTES).read_bytes())
        except (OSError, ValueError):
            return {}
        return noted

    def _entries(self) -> list[str]:
        first = [name for name in names(str(self.folder)) if len(name) == 2]
        return [f"{name}/{each}" for name in first for each in names(f"{self.folder}/{name}")]


def names(place: str) -> list[str]:
    """What is in a folder; nothing where there is none."""
    try:
        return os.listdir(place)
    except OSError:
        return []


def found(place: str) -> Files:
    """The files of an entry that PoCL loads, as they are now."""
    files = {}
    for path in loaded(place):
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        files[os.path.relpath(path, place)] = [status.st_size, status.st_mtime_ns]
    return files


def loaded(place: str) -> Iterator[str]:
    """The paths of an entry's files that PoCL loads."""
    for folder, _, inside in os.walk(place):
        yield from (f"{folder}/{name}" for name in inside if name.endswith(KEPT))


def unchanged(place: str, files: Files) -> bool:
    """Whether all files are as they were noted."""
    try:
        for name, (size, changed) in files.items():
            status = os.stat(f"{place}/{name}")
            if status.st_size != size or status.st_mtime_ns != changed:
                return False
    except OSError:
        return False
    return True


def all_whole(place: str) -> bool:
    """Whether all files look whole: bitcode begins as such, and a library is as long as its table of sections says."""
    for path in loaded(place):
        try:
            with open(path, "rb") as file:
                head = file.read(64)
            size = os.path.getsize(path)
        except OSError:
            return False
        if path.endswith(".bc") and (size % 4 or not head.startswith(BITCODE)):
            return False
        if path.endswith(".so"):
            if len(head) < 64 or not head.startswith(LIBRARIES):
                return False
            if head.startswith(ELF) and size < sections_end(head):
                return False
    return True


def sections_end(head: bytes) -> int:
    """Where the table of sections ends, which stands last in a library: offset, size and number of its lines."""
    (start,) = struct.unpack_from("<Q", head, 40)
    each, count = struct.unpack_from("<HH", head, 58)
    return int(start + each * count)
