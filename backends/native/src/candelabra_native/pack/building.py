"""Compile kernels into the library of a processor level: many kernels per call of the compiler, several calls at once.

The object files are kept by a key of all that they depend on, so that a second build compiles what changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    """The errors of kernels that do not compile and are left out."""


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
    command_for(level, True)  # raises without a compiler
    unit_of = {object_file(part, level, objects): part for part in units(sources)}
    new = {file: part for file, part in unit_of.items() if not file.exists()}
    kept, refused = {file: unit_of[file] for file in unit_of if file not in new}, list[BackendError]()
    progress(len(kept), len(unit_of))
    for done, (good, errors) in enumerate(_compiled(new, level, objects), len(kept) + 1):
        if strict and errors:
            raise errors[0]
        refused += errors
        kept |= {object_file(good, level, objects): good} if good else {}
        progress(done, len(unit_of))
    link(sorted(kept), level, to)
    for old in set((objects / level).glob("*.o")) - set(kept):
        old.unlink(missing_ok=True)
    return Built(to, sum(map(len, kept.values())), len(unit_of), len(new), to.stat().st_size, refused)


def object_file(sources: Sequence[Source], level: str, folder: Path) -> Path:
    """Return the object file of a unit: its name is a hash of the text, the options and the compiler."""
    key = ProgramCache.key(unit(sources), *command_for(level, sources[0].contract), version())
    return folder / level / f"{key[:32]}.o"


def _compiled(
    unit_of: Mapping[Path, list[Source]], level: str, objects: Path
) -> Iterator[tuple[list[Source], list[BackendError]]]:
    """Compile on all processors that this process may use, the longest first; yield the results of :func:`_compile`."""
    order = sorted(unit_of.values(), key=lambda part: -sum(len(source.body) for source in part))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        running = [pool.submit(_compile, part, level, objects) for part in order]
        try:
            for each in as_completed(running):
                yield each.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _compile(sources: list[Source], level: str, objects: Path) -> tuple[list[Source], list[BackendError]]:
    """Compile an object file of those sources that compile. Return them, and the errors of the others."""
    try:
        compile_unit(sources, level, object_file(sources, level, objects), library=False)
    except BackendError as error:
        if len(sources) == 1:
            return [], [error]
        alone = [_compile([source], level, objects) for source in sources]
        good = [source for compiled, _ in alone for source in compiled]
        if good:
            compile_unit(good, level, object_file(good, level, objects), library=False)
        return good, [error for _, errors in alone for error in errors]
    return sources, []
