"""Find the compiled code of a kernel: in the pack, in the cache on disk, or by the compiler, if the user allows it."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from candelabra_clike import C, Source
from candelabra_clike.cache import USED, VARIABLE, ProgramCache, cache_folder, temporary_folder

from candelabra_native import compiling
from candelabra_native.pack import libraries
from candelabra_native.processor import level, levels

COMPILE: Final = "CANDELABRA_COMPILE"
"""The environment variable that allows compiling at run time (1) or forbids it (0). Without it, the extra ``jit``
allows it."""


class Missing(Exception):
    """A kernel that is not compiled and must not be: NumPy serves the call."""


def may_compile() -> bool:
    """Return whether kernels may be compiled at run time."""
    setting = os.environ.get(COMPILE, "")
    if not setting:
        return importlib.util.find_spec("ziglang") is not None
    return setting != "0" and compiling.compiler() is not None


class _Waiting(threading.local):
    """The sources of this thread that :func:`compiled_together` will compile, by the names of their entry points."""

    sources: dict[str, Source] | None = None


_waiting: Final = _Waiting()


@contextmanager
def compiled_together() -> Iterator[None]:
    """Compile the kernels that are missing within the block at its end, in few calls of the compiler.

    Within the block, :func:`find` raises :class:`Missing` for them.
    """
    _waiting.sources = {}
    try:
        yield
        sources = _waiting.sources
    finally:
        _waiting.sources = None
    programs: dict[Any, dict[str, Source]] = {}
    for name, source in sources.items():
        programs.setdefault((source.preamble(C), source.contract), {})[name] = source
    for program in programs.values():
        _compile_all(program)


def _compile_all(sources: dict[str, Source]) -> None:
    """Compile sources of one preamble into one file, which stands under the name of each."""
    processor = level()
    assert processor is not None
    kept = folder() / processor
    first, *others = (kept / f"{name}.so" for name in sources)
    with suppress(OSError):
        kept.mkdir(parents=True, exist_ok=True)
    compiling.compile_unit([*sources.values()], processor, first)
    for other in others:
        with suppress(FileExistsError):
            other.hardlink_to(first)


def find(source: Source) -> int:
    """Return the address of a kernel's entry point. Raises :class:`Missing`, or ``BackendError`` from the compiler.

    A processor runs the kernels of lower levels too: they serve what the pack lacks for its own.
    """
    name = compiling.kernel_name(source)
    for each in levels():
        address = libraries.entry_point(libraries.path(each), name)
        if address is not None:
            return address
    processor = level()
    if processor is None or not may_compile():
        raise Missing(source.name)
    file = folder() / processor / f"{name}.so"
    if not file.exists():
        if _waiting.sources is not None:
            _waiting.sources[name] = source
            raise Missing(source.name)
        compiling.compile_unit([source], processor, file)
    address = libraries.entry_point(file, name)
    assert address is not None
    USED.add(file)
    return address


def folder() -> Path:
    """Return the folder of the kernels that this machine compiled with today's compiler."""
    own = temporary_folder("native") if os.environ.get(VARIABLE) == "0" else cache_folder("native")
    return own / ProgramCache.key(compiling.version())[:16]
