"""The kernels that devices have compiled, as bytes that another process or machine loads.

Devices with a compiler keep kernels in folders, by a hash of everything that they depend on (source, options, compiler,
processor). An artifact is a zip file of those that this process has used. Loading adds the files to the folders, so
that later compilations find them. Kernels are machine code: load only bytes that you trust.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from candelabra._annotations import Any, Final, NamedTuple
from candelabra._compile.calling import forget_programs
from candelabra._plugins.loading import manager
from candelabra._serialization.atomic import replacing
from candelabra._version import __version__
from candelabra.errors import FileFormatError

MANIFEST: Final = "candelabra-kernels.json"
FORMAT: Final = 1
NAME: Final = "the artifacts of load_cache_artifacts()"
VARIABLE: Final = "CANDELABRA_CACHE"
"""The environment variable with the folder of all caches."""


class CacheInfo(NamedTuple):
    """The files of an artifact, by the name of the cache that they belong to."""

    artifacts: dict[str, list[str]]


def _caches() -> dict[str, tuple[Path, list[Path]]]:
    """Return the folder and the used files of each cache of the loaded devices."""
    return {name: (folder, list(used)) for name, folder, used in filter(None, manager().hook.candelabra_kernel_cache())}


def save_cache_artifacts() -> tuple[bytes, CacheInfo] | None:
    """Return the compiled kernels that this process has used, as bytes, and their names.

    Returns None if no device that was used keeps kernels. The bytes hold no kernels if those of the installed package
    served all calls.
    """
    caches = _caches()
    if not caches:
        return None
    content, entries = io.BytesIO(), list[dict[str, str]]()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (folder, used) in sorted(caches.items()):
            for file in used:
                data, path = file.read_bytes(), file.relative_to(folder).as_posix()
                archive.writestr(zipfile.ZipInfo(f"{name}/{path}"), data)
                entries.append({"cache": name, "path": path, "sha256": hashlib.sha256(data).hexdigest()})
        manifest = {"format": FORMAT, "candelabra": __version__, "entries": entries}
        archive.writestr(zipfile.ZipInfo(MANIFEST), json.dumps(manifest))
    return content.getvalue(), _info(entries)


def _info(entries: list[dict[str, str]]) -> CacheInfo:
    found: dict[str, list[str]] = {}
    for entry in entries:
        found.setdefault(entry["cache"], []).append(entry["path"])
    return CacheInfo(found)


def load_cache_artifacts(serialized_artifacts: bytes) -> CacheInfo | None:
    """Add the kernels of an artifact to the caches of the devices that this process has used, and return their names.

    Kernels that depend on another compiler, processor or version are never found, and do no harm. Those of other
    devices are left out. **Kernels are machine code: load only what you trust.** Returns None if nothing was added.
    Raises ``FileFormatError`` if the bytes are no artifact or are damaged; then nothing is added.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(serialized_artifacts)) as archive:
            entries = json.loads(archive.read(MANIFEST))["entries"]
            files = [(e, archive.read(f"{e['cache']}/{e['path']}")) for e in entries]
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise FileFormatError(NAME, "the bytes of save_cache_artifacts()", f"{type(error).__name__}: {error}") from None
    for entry, data in files:
        path = PurePosixPath(entry["path"])
        if path.is_absolute() or ".." in path.parts or hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise FileFormatError(NAME, "files with the hashes of the manifest", f"a damaged entry {entry['path']!r}")
    caches, added = _caches(), list[dict[str, str]]()
    for entry, data in files:
        if entry["cache"] in caches:
            _write(caches[entry["cache"]][0].joinpath(*PurePosixPath(entry["path"]).parts), data)
            added.append(entry)
    return _info(added) if added else None


def _write(file: Path, data: bytes) -> None:
    """Write a file that does not exist yet, so that no process reads a part of it."""
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with replacing(file) as opened:
        opened.write(data)


@contextmanager
def fresh_cache(cache_entries: Any = None, dir: str | None = None, delete: bool = True) -> Iterator[None]:
    """Inside the block, kernels that are compiled are kept in an empty folder, below ``dir``, and compiled functions
    are traced again. Kernels that are loaded stay loaded.

    ``cache_entries``, a dict, gets the names and sizes of the files. ``delete``: remove the folder at the end.
    Devices that were opened before keep their folder, unless they follow ``CANDELABRA_CACHE`` as the device ``cpu``.
    """
    before = os.environ.get(VARIABLE)
    folder = tempfile.mkdtemp(dir=dir, prefix="candelabra-fresh-")
    forget_programs()
    os.environ[VARIABLE] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
        if cache_entries is not None:
            kept = [file for file in Path(folder).rglob("*") if file.is_file()]
            cache_entries.update({os.fspath(file.relative_to(folder)): file.stat().st_size for file in kept})
        if delete:
            shutil.rmtree(folder, ignore_errors=True)
        forget_programs()


__all__ = ["CacheInfo", "fresh_cache", "load_cache_artifacts", "save_cache_artifacts"]
