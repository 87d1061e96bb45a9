"""Write a file atomically: readers see either the old content or the complete new one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from candelabra._annotations import BinaryIO

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that replaces ``path`` at the end of the block, or is removed if the block raises.

    The bytes are written to a new file in the same folder (a rename is atomic only within a file system), which is then
    renamed to ``path``. A file that replaces another one is synced before, and the folder afterwards, so that a failure
    of the system leaves one of them; a new file is left to the system, as other programs do. If ``path`` is a symbolic
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
    temporary = os.path.join(folder, f".{name[:100]}.{os.urandom(6).hex()}.tmp")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
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
