"""The search path of the OpenCL loader, extended by drivers that pip has installed.

A driver is registered by a file ``*.icd`` in ``/etc/OpenCL/vendors`` with the path of its library. PoCL's wheel
installs one next to PyOpenCL, where its loader looks too. Intel's wheels install one in the environment, where no
loader looks, and with a placeholder for the path. So the backend writes a folder with the files of the system and one
for Intel's library, and passes it to the loader. If the user has set ``OCL_ICD_VENDORS``, that takes precedence.
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
"""The default search path of the loader."""
LIBRARIES: Final = {"intel-opencl-rt": "libintelocl.so"}
"""Distributions with a driver that no loader finds, and the name of its library."""


def installed_libraries() -> list[Path]:
    """Return the existing driver libraries of installed distributions."""
    from importlib.metadata import PackageNotFoundError, distribution

    paths = []
    for name, library in LIBRARIES.items():
        try:
            files = distribution(name).files or ()
        except PackageNotFoundError:
            continue
        paths += [
            path for path in (Path(str(f.locate())).resolve() for f in files if f.name == library) if path.is_file()
        ]
    return paths


def icd_files(libraries: list[Path]) -> dict[str, str]:
    """Return the files of a vendors' folder, ``{name: content}``: those of the system and one per library."""
    system_files = {path.name: path.read_text() for path in sorted(SYSTEM.glob("*.icd"))} if SYSTEM.is_dir() else {}
    known = {text.strip() for text in system_files.values()}
    new_files = {f"{path.stem}-installed.icd": f"{path}\n" for path in libraries if str(path) not in known}
    return system_files | new_files if new_files else {}


@contextmanager
def driver_search_path() -> Iterator[None]:
    """Set the search path while the OpenCL loader is used for the first time, so that it finds installed drivers.

    The variable is restored afterwards; the loader reads it once per process.
    """
    files = {} if os.environ.get(VARIABLE) else icd_files(installed_libraries())
    if not files:
        yield
        return
    digest = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    folder = cache_folder("opencl") / f"vendors-{digest}"
    for name, content in files.items():
        write_atomically(folder / name, content.encode())
    with environment_variable(VARIABLE, f"{folder}{os.sep}"):
        yield


@contextmanager
def environment_variable(name: str, value: str) -> Iterator[None]:
    """Set an environment variable, and restore it afterwards."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def searched_folders() -> str:
    """Return a description of where drivers were searched for."""
    named = os.environ.get(VARIABLE)
    if named:
        return f"{named} (from the environment variable {VARIABLE})"
    libraries = ", ".join(map(str, installed_libraries()))
    return f"{SYSTEM}, next to PyOpenCL, and in installed packages ({libraries or 'none of them has a driver'})"
