"""Compile kernels into the library of a processor level: many kernels per call of the compiler, several calls at once.

The object files are kept by a key of all that they depend on, so that a second build compiles what changed.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final, NamedTuple

from candelabra.errors import BackendError
from candelabra_clike import C, Source
from candelabra_clike.cache import ProgramCache

from candelabra_native.compiling import command_for, compile_unit, kernel_name, link, unit, version

LARGEST: Final = 24
"""The most kernels of one call of the compiler."""
CUT: Final = 12
"""The mean number of kernels per call."""
Progress = Callable[[int, int], None]
"""A function of the numbers of object files that are done, and of all."""


class Built(NamedTuple):
    """A library and how it came about."""

    file: Path
    kernels: int
    objects: int
    compiled: int
    """The number of object files that were not there already."""
    size: int
    """In bytes."""
    refused: list[BackendError]
    """What the compiler says of kernels that are left out."""


def units(sources: Iterable[Source]) -> list[list[Source]]:
    """Divide kernels into those of one call of the compiler, which have one preamble and the same options.

    Neighbours by name are together. A unit ends where the hash of a kernel says so: a kernel more or less changes one
    unit, not all that follow.
    """
    groups: dict[tuple[str, bool], list[tuple[str, str, Source]]] = {}
    for source in dict.fromkeys(sources):
        group = groups.setdefault((source.preamble(C), source.contract), [])
        group.append((source.name, kernel_name(source), source))
    made: list[list[Source]] = []
    for group in groups.values():
        part: list[Source] = []
        known: set[str] = set()
        for _, name, source in sorted(group, key=lambda each: each[:2]):
            if name in known:  # sources that differ in nothing that the compiler sees
                continue
            known.add(name)
            part.append(source)
            if len(part) >= LARGEST or int(name[1:], 16) % CUT == 0:
                made.append(part)
                part = []
        if part:
            made.append(part)
    return made


def build(
    sources: Iterable[Source], level: str, to: Path, objects: Path, progress: Progress, *, strict: bool = False
) -> Built:
    """Compile kernels for a processor level into the library ``to``; ``objects`` is the folder of the object files.

    Kernels that do not compile are left out, or raise ``BackendError`` if ``strict``; so does a missing compiler.
    """
    command = command_for(level, True)  # raises without a compiler
    suffix = (*command, version())
    files = {objects / level / f"{ProgramCache.key(unit(part), *suffix)[:32]}.o": part for part in units(sources)}
    new = [file for file in files if not file.exists()]
    refused: list[BackendError] = []
    for done, each in enumerate(_compiled({file: files[file] for file in new}, level), len(files) - len(new) + 1):
        refused += each
        progress(done, len(files))
        if strict and refused:
            raise refused[0]
    kept = sorted(file for file in files if file.exists())
    link(kept, level, to)
    for old in set((objects / level).glob("*.o")) - set(kept):
        old.unlink(missing_ok=True)
    kernels = sum(len(files[file]) for file in files) - len(refused)
    return Built(to, kernels, len(files), len(new), to.stat().st_size, refused)


def _compiled(files: dict[Path, list[Source]], level: str) -> Iterator[list[BackendError]]:
    """Compile on all processors that this process may use, the longest first, and yield the errors of each file."""
    order = sorted(files, key=lambda file: -sum(len(source.body) for source in files[file]))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        running = [pool.submit(_compile, files[file], level, file) for file in order]
        try:
            for each in as_completed(running):
                yield each.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _compile(sources: list[Source], level: str, to: Path) -> list[BackendError]:
    """Compile an object file. If the compiler refuses a kernel, leave it out; return what it says."""
    try:
        compile_unit(sources, level, to, library=False)
    except BackendError as error:
        if len(sources) == 1:
            return [error]
        refused, good = [], []
        with tempfile.TemporaryDirectory(prefix="candelabra-native-") as folder:
            for source in sources:
                wrong = _compile([source], level, Path(folder, "one.o"))
                refused += wrong
                good += [] if wrong else [source]
        if good:
            compile_unit(good, level, to, library=False)
        return refused
    return []
