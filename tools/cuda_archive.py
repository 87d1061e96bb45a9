"""Machine code as one file: packed on a machine without a GPU, unpacked into the kernel cache of a machine with a GPU.

The members are entries of :class:`~candelabra_clike.cache.ProgramCache`, under their keys. The time of an unpacked
entry is 0 until it is used, so that the used entries can be counted.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from candelabra_clike.cache import ProgramCache, write_atomically

ENTRY: Final = re.compile(r"[0-9a-f]{64}")
STAMP: Final = ".unpacked"
"""The file in the cache's folder that names the archive from which it was filled."""


class ArchiveError(ValueError):
    """The error for a file that is not an archive of machine code."""


def pack(cache: ProgramCache, keys: Iterable[str], file: Path) -> int:
    """Write the entries of these keys and return the size of the file in bytes.

    The order of the keys is kept, because adjacent entries are similar and compress well.
    """
    with tarfile.open(file, "w:xz") as archive:
        for key in keys:
            content = cache.path(key).read_bytes()
            member = tarfile.TarInfo(key)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.stat().st_size


def unpack(file: Path, cache: ProgramCache) -> int:
    """Add the missing entries of an archive to the cache and return the number of entries in the archive.

    Raises :class:`ArchiveError` for another file.
    """
    stamp, mark = cache.folder / STAMP, hashlib.sha256(file.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text().split()[:1] == [mark]:
        return int(stamp.read_text().split()[1])
    count = 0
    try:
        with tarfile.open(file, "r:xz") as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is None or not ENTRY.fullmatch(member.name):
                    raise ArchiveError(f"{file}: {member.name!r} is not an entry of the kernel cache")
                path = cache.path(member.name)
                write_atomically(path, content.read())
                os.utime(path, (0, 0))
                count += 1
    except (tarfile.TarError, EOFError) as error:
        raise ArchiveError(f"{file} is not an archive of `make cuda-kernels`: {error}") from error
    write_atomically(stamp, f"{mark} {count}".encode())
    return count


class Use(NamedTuple):
    """The keys of the kernels that were used so far."""

    prebuilt: frozenset[str] = frozenset()
    """Unpacked, and used since."""
    compiled: frozenset[str] = frozenset()
    """Compiled on this machine."""

    def since(self, before: Use) -> Use:
        """Return the difference from an earlier state."""
        return Use(self.prebuilt - before.prebuilt, self.compiled - before.compiled)


def used(cache: ProgramCache | None, prebuilt: ProgramCache | None) -> Use:
    """Return the used kernels of both caches."""
    return Use(
        frozenset(path.name for path in entries(prebuilt) if path.stat().st_mtime),
        frozenset(path.name for path in entries(cache)),
    )


def entries(cache: ProgramCache | None) -> Iterable[Path]:
    """Return the files of a cache's entries."""
    return () if cache is None else (path for path in cache.folder.glob("??/*") if ENTRY.fullmatch(path.name))


def kernel_name(cache: ProgramCache, key: str) -> str:
    """Return the name of an entry's kernel, as in its machine code."""
    match = re.search(rb"\.text\.(\w+)", cache.read(key) or b"")
    return match[1].decode() if match else "?"
