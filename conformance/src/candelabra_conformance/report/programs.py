"""Write reproducers into files. A terminal shows only those that fit on a screen."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from candelabra_conformance.causes import grouped
from candelabra_conformance.model import Result, Run
from candelabra_conformance.report import tally

LINES: Final = 40
"""The number of lines of a screen."""
COLUMNS: Final = 100
"""The number of characters of a line of a screen; longer lines are several."""


def fits_on_a_screen(program: str) -> bool:
    """Return whether a terminal shows a program on one screen."""
    return sum(1 + max(0, len(line) - 1) // COLUMNS for line in program.splitlines()) <= LINES


def saved(run: Run, folder: Path | None, shown: int) -> Mapping[str, Path]:
    """Write reproducers into files, and return the path of each by the id of its case.

    With a ``folder``, that of the first case of each group of failures is written there. Otherwise those of the first
    ``shown`` groups that are longer than a screen are written into a folder for temporary files.
    """
    firsts = [group.first for group in grouped(run.results) if group.first.reproducer]
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        return _written(firsts, folder)
    long = [result for result in firsts[:shown] if not fits_on_a_screen(result.reproducer)]
    return _written(long, _temporary()) if long else {}


def on_a_screen(result: Result) -> str:
    """Return the reproducer of a result, or if it is longer than a screen, the path of a new file that contains it."""
    if fits_on_a_screen(result.reproducer):
        return result.reproducer
    return f"{described(result.reproducer)}: {_written([result], _temporary())[result.case.id]}"


def described(program: str) -> str:
    """Return the length of a program in words."""
    return f"{tally.many(len(program.splitlines()), 'line')} and {len(program):,} characters"


@cache
def _temporary() -> Path:
    """Return this process's folder for temporary files with reproducers."""
    return Path(tempfile.mkdtemp(prefix="candelabra-reproducers-"))


def _written(results: Iterable[Result], folder: Path) -> dict[str, Path]:
    paths = {}
    for result in results:
        path = folder / (re.sub(r"[^\w.-]+", "__", result.case.id) + ".py")
        path.write_text(result.reproducer, encoding="utf-8", errors="backslashreplace")
        paths[result.case.id] = path
    return paths
