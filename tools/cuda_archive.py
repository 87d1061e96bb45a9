"""Machine code as one file: packed where there is no GPU, unpacked into the kernel cache of a machine with one.

The members are entries of :class:`~candelabra_clike.cache.ProgramCache`, under their keys. The time of an unpacked
entry is 0 until it is used, so that what was of use can be counted.
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
"""The file in the cache's folder that says which archive it was filled from."""


class ArchiveError(ValueError):
    """A file that is no archive of machine code."""


def pack(cache: ProgramCache, keys: Iterable[str], file: Path) -> int:
    """Write the entries of these keys, in this order, for neighbours are alike; the size of the file in bytes."""
    with tarfile.open(file, "w:xz") as archive:
        for key in keys:
            content = cache.path(key).read_bytes()
            member = tarfile.TarInfo(key)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file.stat().st_size


def unpack(file: Path, cache: ProgramCache) -> int:
    """Put the entries of an archive into the cache, unless they lie there; how many it has.

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
                    raise ArchiveError(f"{file}: {member.name!r} is no entry of the kernel cache")
                path = cache.path(member.name)
                write_atomically(path, content.read())
                os.utime(path, (0, 0))
                count += 1
    except (tarfile.TarError, EOFError) as error:
        raise ArchiveError(f"{file} is no archive that `make cuda-kernels` made: {error}") from error
    write_atomically(stamp, f"{mark} {count}".encode())
    return count


class Use(NamedTuple):
    """Which kernels were of use so far, by their keys."""

    prebuilt: frozenset[str] = frozenset()
    """Unpacked, and used since."""
    compiled: frozenset[str] = frozenset()
    """Made on this machine."""

    def since(self, before: Use) -> Use:
        """What came after an earlier look."""
        return Use(self.prebuilt - before.prebuilt, self.compiled - before.compiled)


def used(cache: ProgramCache | None, prebuilt: ProgramCache | None) -> Use:
    """Look into both caches."""
    return Use(
        frozenset(path.name for path in entries(prebuilt) if path.stat().st_mtime),
        frozenset(path.name for path in entries(cache)),
    )


def entries(cache: ProgramCache | None) -> Iterable[Path]:
    """The files of a cache's entries."""
    return () if cache is None else (path for path in cache.folder.glob("??/*") if ENTRY.fullmatch(path.name))


def kernel_name(cache: ProgramCache, key: str) -> str:
    """The kernel of an entry, as its machine code names it."""
    found = re.search(rb"\.text\.(\w+)", cache.read(key) or b"")
    return found[1].decode() if found else "?"
