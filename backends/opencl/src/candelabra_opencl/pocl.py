"""A guard for PoCL's own cache of compiled kernels.

PoCL loads cached files without checking them: a truncated or modified file crashes the process. Therefore PoCL gets a
folder of its own. When a process ends, it records the size and the modification time of each file. Before PoCL is
loaded, entries with a changed file are deleted. Files without a record, because their process was killed or is still
running, are inspected. Deleted entries are compiled again.

An entry that another process is writing looks damaged too, and that process fails if it is deleted. So every process
holds a lock of the folder, and damaged entries are deleted while no other process holds it, or when they are old. If
one remains, the process uses a folder of its own.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

from candelabra_clike.cache import (
    VARIABLE,
    cache_folder,
    temporary_folder,
    why_untrusted,
    without_cache,
    write_atomically,
)
from candelabra_clike.processor import processor_flags

from candelabra_opencl.icd import environment_variable
from candelabra_opencl.pocl_processor import target_for

FOLDER: Final = "POCL_CACHE_DIR"
WANTED: Final = "POCL_KERNEL_CACHE"
RECORDS_FILE: Final = "records.json"
LOCK_FILE: Final = "users.lock"
OLD: Final = 3600.0
"""The seconds after which an entry is no longer being written."""
LOADED_SUFFIXES: Final = (".so", ".bc")
"""The suffixes of files that PoCL loads. Its other files are times and texts."""
BITCODE: Final = b"BC\xc0\xde"
LIBRARIES: Final = (b"\x7fELF", b"\xcf\xfa\xed\xfe")
"""The magic numbers of libraries on Linux and macOS."""
ELF: Final = b"\x7fELF\x02\x01"
"""The magic number of 64-bit little-endian Linux libraries, whose size can be checked."""

Files = dict[str, list[int]]
"""Size and modification time (ns) of each file, by its path within the entry."""


@contextmanager
def pocl_cache() -> Iterator[None]:
    """Set PoCL's cache folder while OpenCL devices are enumerated for the first time, when PoCL reads the variable.

    If the user has set PoCL's variables, they take precedence, and the folder is not guarded.
    """
    if os.environ.get(FOLDER) or os.environ.get(WANTED):
        yield
    elif os.environ.get(VARIABLE) == "0":
        with environment_variable(WANTED, "0"):
            yield
    else:
        with environment_variable(FOLDER, str(guarded_cache(cache_folder("opencl") / cache_name()).folder)):
            yield


def cache_name() -> str:
    """Return the name of the cache's folder, which depends on what PoCL compiles for if it does not know the processor.

    PoCL's own keys contain its name of the processor, which is the same for all unknown ones.
    """
    return f"pocl-{target_for(processor_flags())}" if processor_flags() else "pocl"


@lru_cache(None)
def guarded_cache(folder: Path) -> CacheGuard:
    """Return the guard of a folder that PoCL may use: the given one, or one of this process alone. It is active until
    the process ends.
    """
    reason = why_untrusted(folder)
    if reason:
        return CacheGuard(without_cache(folder, reason))
    guard = CacheGuard(folder)
    if not guard.check():
        return CacheGuard(temporary_folder(folder.name))
    atexit.register(guard.record)
    return guard


class CacheGuard:
    """The entries in PoCL's folder: one per program, two levels down."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder
        self._lock = -1

    def check(self) -> bool:
        """Delete the entries that PoCL must not load. Return whether none is left."""
        alone = self._take_lock()
        try:
            return self._delete_damaged(alone)
        finally:
            self._share_lock()

    def _delete_damaged(self, alone: bool) -> bool:
        records, left = self._records(), False
        for entry in self._entries():
            files = records.get(entry)
            entry_folder = f"{self.folder}/{entry}"
            if not (all_files_complete(entry_folder) if files is None else unchanged(entry_folder, files)):
                if alone or is_old(entry_folder):
                    shutil.rmtree(entry_folder, ignore_errors=True)
                else:
                    left = True
        return not left

    def _take_lock(self) -> bool:
        """Lock the folder until the process ends. Return whether no other process has locked it."""
        try:
            from fcntl import LOCK_EX, LOCK_NB, flock

            self._lock = os.open(self.folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o666)
            flock(self._lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            return False
        except (ImportError, OSError):  # a system or a file system without locks
            return True
        return True

    def _share_lock(self) -> None:
        """Let other processes lock the folder too."""
        if self._lock < 0:
            return
        with suppress(ImportError, OSError):
            from fcntl import LOCK_SH, flock

            flock(self._lock, LOCK_SH)

    def record(self) -> None:
        """Record the files of new entries, and remove the records of deleted ones. Entries that another process is
        writing get no record.
        """
        records, now = self._records(), {}
        for entry in self._entries():
            if entry in records:
                now[entry] = records[entry]
            elif all_files_complete(f"{self.folder}/{entry}"):
                now[entry] = file_states(f"{self.folder}/{entry}")
        if now != records:
            try:
                write_atomically(self.folder / RECORDS_FILE, json.dumps(now).encode())
            except OSError:
                return

    def _records(self) -> dict[str, Files]:
        try:
            records: dict[str, Files] = json.loads((self.folder / RECORDS_FILE).read_bytes())
        except (OSError, ValueError):
            return {}
        return records

    def _entries(self) -> list[str]:
        first = [name for name in list_folder(str(self.folder)) if len(name) == 2]
        return [f"{name}/{each}" for name in first for each in list_folder(f"{self.folder}/{name}")]


def list_folder(folder: str) -> list[str]:
    """Return the names in a folder; none if it does not exist."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def file_states(entry_folder: str) -> Files:
    """Return the states of an entry's files that PoCL loads."""
    files = {}
    for path in loaded_files(entry_folder):
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        files[os.path.relpath(path, entry_folder)] = [status.st_size, status.st_mtime_ns]
    return files


def is_old(entry_folder: str) -> bool:
    """Return whether nothing in an entry has changed for an hour, so that no process is writing it."""
    try:
        paths = (entry_folder, *loaded_files(entry_folder))
        return time.time() - max(os.stat(path).st_mtime for path in paths) > OLD
    except OSError:
        return False


def loaded_files(entry_folder: str) -> Iterator[str]:
    """Iterate over the paths of an entry's files that PoCL loads."""
    for folder, _, inside in os.walk(entry_folder):
        yield from (f"{folder}/{name}" for name in inside if name.endswith(LOADED_SUFFIXES))


def unchanged(entry_folder: str, files: Files) -> bool:
    """Return whether all files are as recorded."""
    try:
        for name, (size, changed) in files.items():
            status = os.stat(f"{entry_folder}/{name}")
            if status.st_size != size or status.st_mtime_ns != changed:
                return False
    except OSError:
        return False
    return True


def all_files_complete(entry_folder: str) -> bool:
    """Return whether all files look complete: bitcode by its magic number, a library by the size of its section
    table.
    """
    for path in loaded_files(entry_folder):
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
    """Return the end of a library's section table, which is at the end of the file."""
    (start,) = struct.unpack_from("<Q", head, 40)
    each, count = struct.unpack_from("<HH", head, 58)
    return int(start + each * count)
