"""Write a file atomically: readers see either the old content or the complete new one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from candelabra._annotations import BinaryIO

__all__ = ["replacing"]

_RANDOM = 6
"""The number of random bytes in the name of a temporary file."""
_SUFFIX = ".tmp"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that replaces ``path`` at the end of the block, or is removed if the block raises.

    The bytes are written to a new file in the same folder (a rename is atomic only within a file system), which is then
    renamed to ``path``. A file that replaces another one is synced before, and the folder afterwards, so that a failure
    of the system leaves one of them; a new file is left to the system, as other programs do. A process that is killed
    leaves its temporary file behind; the next block for the same path removes it. If ``path`` is a symbolic
    link, its target is replaced. The mode is that of the old file, or follows the process's umask. A device or a pipe
    is written directly.

    Raises:
        OSError: as opening ``path`` for writing would.
    """
    target = os.path.realpath(os.fspath(path))
    mode = _mode(target)
    if mode is not None and not stat.S_ISREG(mode):
        with open(target, "wb") as f:
            yield f
        return
    folder, name = os.path.split(target)
    _remove_abandoned(folder, name)
    temporary, descriptor = _new_file(folder, name)
    try:
        with open(descriptor, "wb") as f:
            yield f
            f.flush()
            if mode is not None:
                os.fsync(f.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    if mode is not None:
        _sync_folder(folder)


def _new_file(folder: str, name: str) -> tuple[str, int]:
    """Create a temporary file for a target, and lock it while it is open. Return its path and its descriptor."""
    while True:
        temporary = os.path.join(folder, f"{_prefix(name)}{os.urandom(_RANDOM).hex()}{_SUFFIX}")
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        _lock(descriptor, wait=True)
        if os.fstat(descriptor).st_nlink:
            return temporary, descriptor
        os.close(descriptor)  # another process took it for abandoned before it was locked


def _remove_abandoned(folder: str, name: str) -> None:
    """Remove the temporary files of a target whose processes have ended.

    The system releases a lock when the file is closed or its process ends, so a file whose lock is free is abandoned.
    A file system without locks keeps the files. On Windows an open file cannot be removed.
    """
    prefix = _prefix(name)
    length = len(prefix) + 2 * _RANDOM + len(_SUFFIX)
    names = os.listdir(folder) if os.access(folder, os.R_OK) else []
    for entry in names:
        if entry.startswith(prefix) and entry.endswith(_SUFFIX) and len(entry) == length:
            with suppress(OSError):
                _remove_unless_locked(os.path.join(folder, entry))


def _remove_unless_locked(path: str) -> None:
    if os.name == "nt":
        os.unlink(path)
        return
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if _lock(descriptor, wait=False):
            os.unlink(path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed. Return False if it is locked, or if the system has no such locks."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        return False
    try:
        flock(descriptor, LOCK_EX if wait else LOCK_EX | LOCK_NB)
    except OSError:
        return False
    return True


def _prefix(name: str) -> str:
    return f".{name[:100]}."


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder: str) -> None:
    """Make the rename durable, if the system can open a folder (Windows cannot)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some network file systems do not support it; the file itself is synced
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
