"""Compile the extension module ``_launch`` with ``zig cc``, of the package ``ziglang``, for this or another platform.

``python build.py`` compiles it for this machine, next to this file. It is run by its path: the package cannot be
imported without the module.
"""

from __future__ import annotations

import importlib.util
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

SOURCES: Final = ("launch.c", "pool.c", "crash.c", "memory.c", "rows.c", "plan.c")
NAME: Final = "_launch.abi3.so"
OPTIONS: Final = (
    "-O2",
    "-std=gnu11",
    "-Wall",
    "-Wextra",
    "-Wno-unused-parameter",  # the signatures of Python's functions
    "-Werror",
    "-shared",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-sanitize=undefined",  # which zig cc turns on where nothing is said
    "-s",
    "-DPy_LIMITED_API=0x030B0000",
)


MACOS_OPTIONS: Final = ("-Wl,-undefined,dynamic_lookup",)
"""Python's functions are those of the interpreter that loads the module."""


def host_target() -> str:
    """Return the target for this machine: glibc 2.17 and newer."""
    if not sys.platform.startswith("linux"):
        raise RuntimeError(f"candelabra_native.launch is built for Linux only, and this is {sys.platform}")
    return f"{platform.machine()}-linux-gnu.2.17"


def build(to: Path, target: str | None = None, *options: str) -> Path:
    """Compile the module into the folder ``to`` and return the file's path.

    ``target`` is a target of zig, such as ``aarch64-linux-gnu.2.17``; by default, this machine. ``options`` are passed
    to the compiler too. The headers are those of the running interpreter; those of CPython 3.11 and newer serve all
    platforms with 64 bits. Raises ``RuntimeError`` if the compiler or the headers are missing, or if it fails.
    """
    headers = Path(sysconfig.get_path("include"))
    if not (headers / "Python.h").is_file():
        raise RuntimeError(
            f"compiling candelabra_native.launch needs Python's headers, but there is no Python.h in {headers}: "
            "install them (on Debian and Ubuntu, the package python3-dev), or install candelabra-native from a wheel"
        )
    if importlib.util.find_spec("ziglang") is None:
        raise RuntimeError("compiling candelabra_native.launch needs zig's compiler: pip install ziglang")
    to.mkdir(parents=True, exist_ok=True)
    here = Path(__file__).parent
    target = target or host_target()
    command = [sys.executable, "-m", "ziglang", "cc", "-target", target, *OPTIONS, *options]
    if "macos" in target:
        command += MACOS_OPTIONS
    command += [f"-I{headers}", *(str(here / name) for name in SOURCES), "-o", str(to / NAME)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the compiler failed on candelabra_native.launch:\n{' '.join(command)}\n{done.stderr}")
    return to / NAME


if __name__ == "__main__":
    build(Path(__file__).parent)
