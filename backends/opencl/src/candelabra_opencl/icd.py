"""Where OpenCL's loader looks for drivers, and how it is shown those that pip has installed.

A driver announces itself by a file ``*.icd`` in ``/etc/OpenCL/vendors`` with the path of its library in it. PoCL's
wheel puts one beside PyOpenCL, where its loader looks too. Intel's wheels install one into the environment, where no
loader looks, and with a placeholder for the path. So the backend writes a folder of its own with the system's files and
one for Intel's library, and names it to the loader. Who sets ``OCL_ICD_VENDORS`` has the last word.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from candelabra_clike.cache import cache_folder, write_atomically

VARIABLE: Final = "OCL_ICD_VENDORS"
SYSTEM: Final = Path("/etc/OpenCL/vendors")
"""Where the loader looks unless it is told otherwise."""
LIBRARIES: Final = {"intel-opencl-rt": "libintelocl.so"}
"""Distributions that bring a driver which no loader finds, and the name of its library."""


def installed_libraries() -> list[Path]:
    """The drivers' libraries of installed distributions, as far as their files are there."""
    from importlib.metadata import PackageNotFoundError, distribution

    found = []
    for name, library in LIBRARIES.items():
        try:
            files = distribution(name).files or ()
        except PackageNotFoundError:
            continue
        found += [
            path for path in (Path(str(f.locate())).resolve() for f in files if f.name == library) if path.is_file()
        ]
    return found


def announcements(libraries: list[Path]) -> dict[str, str]:
    """The files of a vendors' folder: ``{name: content}``, those of the system and one for each library."""
    theirs = {path.name: path.read_text() for path in sorted(SYSTEM.glob("*.icd"))} if SYSTEM.is_dir() else {}
    known = {text.strip() for text in theirs.values()}
    ours = {f"{path.stem}-installed.icd": f"{path}\n" for path in libraries if str(path) not in known}
    return theirs | ours if ours else {}


@contextmanager
def drivers_shown() -> Iterator[None]:
    """While OpenCL's loader is asked for the first time: it looks where installed drivers are announced too.

    The variable is as before afterwards; the loader reads it once in a process.
    """
    wanted = {} if os.environ.get(VARIABLE) else announcements(installed_libraries())
    if not wanted:
        yield
        return
    digest = hashlib.sha256(repr(sorted(wanted.items())).encode()).hexdigest()[:16]
    folder = cache_folder("opencl") / f"vendors-{digest}"
    for name, content in wanted.items():
        write_atomically(folder / name, content.encode())
    with setting(VARIABLE, f"{folder}{os.sep}"):
        yield


@contextmanager
def setting(name: str, value: str) -> Iterator[None]:
    """A variable of the environment for a while; as before afterwards."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def looked_in() -> str:
    """Where drivers were looked for, in words."""
    named = os.environ.get(VARIABLE)
    if named:
        return f"{named} (from the environment variable {VARIABLE})"
    libraries = ", ".join(map(str, installed_libraries()))
    return f"{SYSTEM}, beside PyOpenCL, and among installed packages ({libraries or 'none of them brings a driver'})"
