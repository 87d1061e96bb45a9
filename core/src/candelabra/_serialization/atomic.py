"""Writing a file so that readers see either the old one or the whole new one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from candelabra._annotations import BinaryIO

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that takes the place of ``path`` when the block ends, and leaves no trace if the block raises.

    The bytes go to a new file in the same folder (a rename is atomic only within a file system), are synced, and are
    renamed over ``path``; then the folder is synced. A symbolic link stays and its target is replaced. The mode is the
    old file's, or what the process's umask says. A device or a pipe cannot be replaced and is written directly.

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
            os.fsync(f.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


def _sync_folder(folder: str) -> None:
    """Make the rename durable, where a folder can be opened (not on Windows)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some network file systems refuse; the file itself is synced
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
