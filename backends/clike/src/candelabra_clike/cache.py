"""What is kept on disk from one process to the next: compiled programs, each under the hash of all that it depends on.

Processes may share the folder. An entry is written to a file of its own and then renamed, so nobody sees half of one;
it carries the hash of its content, and one that does not agree with it is as good as none. The time of an entry's file
is that of its last use.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

FORMAT: Final = b"candelabra-program 1\n"
"""Stands at the beginning of every entry; another format is another first line, and another key."""
VARIABLE: Final = "CANDELABRA_CACHE"
"""The environment variable with the folder to keep things in; ``0`` keeps nothing."""


def cache_folder(backend: str) -> Path:
    """The folder of a backend's files: below ``$CANDELABRA_CACHE``, else where the system keeps users' caches.

    Without a place that can be written to it is below the system's folder for temporary files.
    """
    named = os.environ.get(VARIABLE, "")
    if named not in ("", "0"):
        return Path(named).expanduser() / backend
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    for folder in (Path(base) if base else Path("~/.cache").expanduser(), Path(tempfile.gettempdir())):
        mine = folder / "candelabra" / backend
        try:
            mine.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(mine, os.W_OK):
            return mine
    return Path(tempfile.mkdtemp(prefix=f"candelabra-{backend}-"))


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that whoever opens it, now or after a crash, finds all of it or what was there before."""
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
    """Compiled programs in a folder, by key. A folder that cannot be read or written is no error: nothing is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder: Final = folder

    @staticmethod
    def key(*parts: str) -> str:
        """The key of what depends on these texts: source, options, device, driver, platform."""
        digest = hashlib.sha256(FORMAT)
        for part in parts:
            content = part.encode()
            digest.update(b"%d:" % len(content) + content)
        return digest.hexdigest()

    def read(self, key: str) -> bytes | None:
        """The entry of a key; None where there is none, or none that is whole."""
        path = self.path(key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        head, binary = content[: len(FORMAT) + 32], content[len(FORMAT) + 32 :]
        if head != FORMAT + hashlib.sha256(binary).digest():
            return None
        with suppress(OSError):  # the folder may be another user's
            os.utime(path)
        return binary

    def write(self, key: str, binary: bytes) -> None:
        """Keep an entry; whoever writes last wins, and all write the same."""
        with suppress(OSError):
            write_atomically(self.path(key), FORMAT + hashlib.sha256(binary).digest() + binary)

    def forget(self, key: str) -> None:
        """Take away an entry that turned out to be of no use."""
        with suppress(OSError):
            self.path(key).unlink(missing_ok=True)

    def path(self, key: str) -> Path:
        """The file of an entry, whether there is one or not."""
        return self.folder / key[:2] / key
