"""Compile sources to shared libraries with a C compiler of the clang family, several kernels per call.

Kernels need no library and no C runtime, so that a compiler for any system can produce the file for any other.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

from candelabra.errors import BackendError
from candelabra_clike import C, Source
from candelabra_clike.cache import VARIABLE, ProgramCache, cache_folder, temporary_folder
from candelabra_clike.library import needed

TARGETS: Final = {
    "x86_64_v3": ("x86_64-linux-gnu", "x86-64-v3"),
    "x86_64_v4": ("x86_64-linux-gnu", "x86-64-v4"),
    "aarch64": ("aarch64-linux-gnu", "generic"),
}
"""The target and the processor of each level, in the words of clang."""
TUNING: Final = {"x86_64_v4": ("-mprefer-vector-width=512",)}
"""More options of a level. Without this one, loops use half of each vector register of AVX-512."""
LINKING: Final = ("-shared", "-nostdlib", "-Wl,--no-undefined", "-Wl,--hash-style=gnu", "-s")


def kernel_name(source: Source) -> str:
    """Return the name of a kernel's entry point: a hash of everything that its code depends on."""
    options = C.options if source.contract else (*C.options, *C.exact_options)
    return "k" + ProgramCache.key(source.program(C), " ".join(options))[:24]


@lru_cache(1)
def compiler() -> tuple[str, ...] | None:
    """Return the command of a compiler that understands clang's extensions, or None: ``$CC``, cc, clang, or zig's."""
    for command in (os.environ.get("CC", "").split(), ["cc"], ["clang"]):
        if command and shutil.which(command[0]) and _is_clang(command):
            return tuple(command)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    return None


def _is_clang(command: Sequence[str]) -> bool:
    try:
        shown = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return "clang" in shown


@lru_cache(1)
def version() -> str:
    """Return the compiler's version, on which the files of the cache depend. There must be a compiler.

    To start zig takes 0.2 s, so the version of its binary is kept on disk.
    """
    command = compiler()
    assert command is not None
    kept, key = _versions(), _identity(command)
    found = kept.read(key) if kept is not None and key else None
    if found is not None:
        return found.decode()
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    shown = done.stdout.splitlines()[0]
    if kept is not None and key:
        kept.write(key, shown.encode())
    return shown


def _versions() -> ProgramCache | None:
    """Return the versions of compilers that were asked before, or None if nothing is kept."""
    return None if os.environ.get(VARIABLE) == "0" else ProgramCache(cache_folder("native") / "versions")


def _identity(command: Sequence[str]) -> str:
    """Return a key of the file that a command runs, or an empty string if that is not known: it may be a script."""
    found = importlib.util.find_spec("ziglang") if "ziglang" in command else None
    binary = Path(found.origin).with_name("zig") if found is not None and found.origin else None
    if binary is None or not binary.is_file():
        return ""
    status = binary.stat()
    return ProgramCache.key(*command, os.fspath(binary), str(status.st_size), str(status.st_mtime_ns))


def unit(sources: Sequence[Source]) -> str:
    """Return one program with the entry points of several sources, which have one preamble."""
    preamble = sources[0].preamble(C)
    functions = needed("\n".join(source.body for source in sources))
    return preamble + functions + "".join(source.entry(C, kernel_name(source)) for source in sources)


def command_for(level: str, contract: bool) -> list[str]:
    """Return the compiler's command for a processor level. Raises ``BackendError`` if there is no compiler."""
    command = compiler()
    if command is None:
        raise BackendError("no C compiler was found: pip install candelabra-native[jit], or set CC to a clang")
    target, processor = TARGETS[level]
    zig = "zig" in Path(command[0]).name or "ziglang" in command
    machine = f"-mcpu={processor.replace('-', '_')}" if zig or level == "aarch64" else f"-march={processor}"
    exact = () if contract else C.exact_options
    return [*command, "-target", target, machine, *TUNING.get(level, ()), *C.options, *exact]


def compile_unit(sources: Sequence[Source], level: str, to: Path, *, library: bool = True) -> Path:
    """Compile sources of one preamble into a shared library, or an object file. Raises ``BackendError``."""
    command = command_for(level, sources[0].contract)
    names = ", ".join(dict.fromkeys(source.name for source in sources[:5]))
    with tempfile.TemporaryDirectory(prefix="candelabra-native-") as folder:
        text = Path(folder, "kernels.c")
        text.write_text(unit(sources), encoding="utf-8")
        return _produce([*command, *(LINKING if library else ["-c"]), os.fspath(text)], to, names)


def link(objects: Sequence[Path], level: str, to: Path) -> Path:
    """Link object files into a shared library. Raises ``BackendError`` if a symbol is missing, for example."""
    command = command_for(level, True)
    with tempfile.TemporaryDirectory(prefix="candelabra-native-") as folder:
        listed = Path(folder, "objects")
        listed.write_text("\n".join(f'"{path}"' for path in objects), encoding="utf-8")
        return _produce([*command, *LINKING, f"@{listed}"], to, to.name)


def _produce(command: Sequence[str], to: Path, names: str) -> Path:
    """Run the compiler, and put its result in its place at once."""
    to.parent.mkdir(parents=True, exist_ok=True)
    handle, made = tempfile.mkstemp(dir=to.parent, prefix=".writing-", suffix=to.suffix)
    os.close(handle)
    try:
        done = subprocess.run(
            [*command, "-o", made], capture_output=True, text=True, env={**_own_cache(), **os.environ}, check=False
        )
        if done.returncode:
            shown = "\n".join(done.stderr.splitlines()[:20])
            raise BackendError(f"the compiler ({' '.join(command[:4])}) cannot build {names}:\n{shown}")
        os.replace(made, to)
    finally:
        Path(made).unlink(missing_ok=True)
    return to


@lru_cache(1)
def _own_cache() -> dict[str, str]:
    """Return a folder for what zig keeps. Our files have keys of their own."""
    folder = os.fspath(temporary_folder("zig"))
    return {"ZIG_LOCAL_CACHE_DIR": folder, "ZIG_GLOBAL_CACHE_DIR": folder}
