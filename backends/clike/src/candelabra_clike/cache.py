"""An on-disk cache of compiled programs, keyed by a hash of everything that they depend on.

Processes may share the folder. An entry is written to a temporary file and renamed, so that no process reads a partial
entry. It contains a hash of its content; an entry whose hash does not match is ignored. The time of an entry's file
is that of its last use.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Final

FORMAT: Final = b"candelabra-program 1\n"
"""The first line of every entry. Another format has another first line, and other keys."""
VARIABLE: Final = "CANDELABRA_CACHE"
"""The environment variable with the cache folder; ``0`` disables the cache."""
USED: Final[set[Path]] = set()
"""The files of caches that this process has read or written."""


def cache_folder(backend: str) -> Path:
    """Return the cache folder of a backend: below ``$CANDELABRA_CACHE``, or below the user's cache folder of the
    system.

    The folder is the user's alone (:func:`why_untrusted`). If it cannot be, a warning is emitted, and the folder is one
    that is removed when the process ends.
    """
    setting = os.environ.get(VARIABLE, "")
    if setting not in ("", "0"):
        folder = Path(setting).expanduser() / backend
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
        folder = Path(base).expanduser() / "candelabra" / backend
    reason = why_untrusted(folder)
    return without_cache(folder, reason) if reason else folder


def why_untrusted(folder: Path) -> str:
    """Create a folder, and return the reason why compiled kernels must not be kept there, or an empty string.

    Loading a kernel runs its code, so no other user may be able to write one: the folder must be the user's, with mode
    0700. A folder of the user that others could only read gets this mode, and what is in it is used. One that
    others could write to is refused, because its files may already be theirs. Windows has no such modes; there the
    folder is below the user's profile.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.stat(folder)
        if os.name == "posix":
            if status.st_uid != os.geteuid():
                return f"{str(folder)!r} belongs to another user"
            if status.st_mode & 0o022:
                return f"other users can write to {str(folder)!r}, so its files may be theirs; remove it"
            if status.st_mode & 0o777 != 0o700:
                os.chmod(folder, 0o700)
    except OSError as error:
        return str(error)
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"no permission to write to {str(folder)!r}"


@lru_cache(None)
def without_cache(folder: Path, reason: str) -> Path:
    """Warn that a folder cannot be used, once, and return one for this process alone."""
    warnings.warn(
        f"compiled kernels are not kept for later runs, because their folder cannot be used: {reason}. Set "
        f"{VARIABLE} to a folder of your own, or to 0 to keep none",
        RuntimeWarning,
        stacklevel=2,
    )
    return temporary_folder(folder.name)


@lru_cache(None)
def temporary_folder(name: str) -> Path:
    """Return a folder that is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix=f"candelabra-{name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that every reader, also after a crash, finds either all of the new content or the old content."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


class ProgramCache:
    """Compiled programs in a folder, by key. If the folder cannot be read or written, nothing is cached."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder

    @staticmethod
    def key(*texts: str) -> str:
        """Return the key of a program that depends on these texts: source, options, device, driver, platform."""
        digest = hashlib.sha256(FORMAT)
        for text in texts:
            content = text.encode()
            digest.update(b"%d:" % len(content) + content)
        return digest.hexdigest()

    def in_use(self) -> list[Path]:
        """Return the files of the folder that this process has read or written."""
        return sorted(path for path in USED if self.folder in path.parents and path.exists())

    def read(self, key: str) -> bytes | None:
        """Return the entry of a key, or None if there is no complete one."""
        path = self.path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        head, binary = content[: len(FORMAT) + 32], content[len(FORMAT) + 32 :]
        if head != FORMAT + hashlib.sha256(binary).digest():
            return None
        with suppress(OSError):  # the file system may be for reading only
            os.utime(path)
        USED.add(path)
        return binary

    def write(self, key: str, binary: bytes) -> None:
        """Store an entry. All writers of a key write the same content, so the order of concurrent writes does not
        matter.
        """
        with suppress(OSError):
            write_atomically(self.path(key), FORMAT + hashlib.sha256(binary).digest() + binary)
            USED.add(self.path(key))

    def forget(self, key: str) -> None:
        """Delete an entry that cannot be used."""
        with suppress(OSError):
            self.path(key).unlink(missing_ok=True)

    def path(self, key: str) -> Path:
        """The file of an entry, whether there is one or not."""
        return self.folder / key[:2] / key
