"""Build the extension module and the kernels of this machine in a checkout, or the kernels of other processors.

Usage: ``python -m candelabra_native.pack [--list short|full|FILE] [--level LEVEL ...] [--to FOLDER]``.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from candelabra.errors import BackendError
from candelabra_clike.cache import cache_folder

from candelabra_native import processor
from candelabra_native.compiling import TARGETS
from candelabra_native.pack import libraries
from candelabra_native.pack.building import build
from candelabra_native.pack.calls import parse
from candelabra_native.pack.replaying import needed_sources

LISTS = ("short", "full")
LAUNCH = Path(__file__).parents[1] / "launch"


def main(words: Sequence[str] | None = None) -> int:
    """Build the libraries of the levels. Return 0 also where nothing can be built, because NumPy serves there."""
    parser = argparse.ArgumentParser(prog="python -m candelabra_native.pack", description=__doc__)
    parser.add_argument("--list", default="short", help="short, full, or a file with a call per line (default: short)")
    parser.add_argument("--level", nargs="+", choices=sorted(TARGETS), help="default: the level of this machine")
    parser.add_argument("--lower", action="store_true", help="the levels below this machine's too, which it also runs")
    parser.add_argument("--to", type=Path, default=libraries.FOLDER, help="the folder of the libraries")
    parser.add_argument("--objects", type=Path, help="the folder that keeps object files (default: in the cache)")
    parser.add_argument("--required", action="store_true", help="exit with status 1 where something cannot be built")
    options = parser.parse_args(words)
    levels = options.level or processor.levels()[: None if options.lower else 1]
    if not levels:
        print("native: there are no kernels for this processor or system; NumPy serves")
        return int(options.required)
    objects = options.objects or cache_folder("native") / "objects"
    try:
        if not options.level:
            extension(LAUNCH)
        for level in levels:
            kernels(level, options.list, options.to, objects, options.required)
    except (BackendError, RuntimeError) as error:
        print(f"native: NumPy serves, because the kernels cannot be compiled: {error}")
        return int(options.required)
    return 0


def extension(folder: Path) -> None:
    """Compile the extension module, if it is older than its sources. Raises ``RuntimeError``."""
    made = folder / "_launch.abi3.so"
    newest = max(file.stat().st_mtime for file in folder.glob("*.[chp]*") if file != made)
    if not made.exists() or made.stat().st_mtime < newest:
        # The file is run by its path, since the package imports the module that does not exist yet.
        runpy.run_path(str(folder / "build.py"))["build"](folder)
        print("native: the extension module is compiled")


def kernels(level: str, listed: str, to: Path, objects: Path, strict: bool) -> None:
    """Build one library, with a line that counts."""
    start = time.monotonic()
    file = libraries.FOLDER / f"{listed}.txt" if listed in LISTS else Path(listed)
    sources = needed_sources(parse(file.read_text(encoding="utf-8")), level)
    counter = Counter(f"native: kernels for {level}")
    built = build(sources, level, libraries.path(level, to), objects, counter, strict=strict)
    for each in built.refused:
        lines = str(each).splitlines()
        counter.end(f"left to NumPy: {lines[0]} {next((line for line in lines if ' error: ' in line), '')}")
    size, seconds = f"{built.size / 2**20:.1f} MiB", f"{time.monotonic() - start:.0f} s"
    counter.end(f"{built.kernels}, {built.compiled} of {built.objects} files compiled, {size}, {seconds}")


class Counter:
    """A line on the terminal that counts; where the output is no terminal, a line for each fifth of the work."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._terminal = sys.stdout.isatty()
        self._fifth = 0

    def __call__(self, done: int, total: int) -> None:
        if self._terminal:
            print(f"\r{self._title}: {done} of {total} files", end="", flush=True)
        elif done and done * 5 // total > self._fifth:
            self._fifth = done * 5 // total
            print(f"{self._title}: {done} of {total} files", flush=True)

    def end(self, words: str) -> None:
        """Replace the count by the result."""
        print(f"{chr(13) if self._terminal else ''}{self._title}: {words}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
