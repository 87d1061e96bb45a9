"""Verdicts of the oracle in a file, written as they come, so that an interrupted run goes on where it stopped.

The file has one JSON array a line. The first says which state of the sources was judged and with which options; a run
with another state or other options starts again, so that one report never mixes two states. Each further line has
a name and its verdict.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("core/src", "nn/src", "backends")
"""The folders whose contents a verdict depends on."""


def state_of_sources(sources: tuple[str, ...] = SOURCES, root: Path = ROOT) -> str:
    """Return a digest of the sources: what git has of them, and changes that are not committed yet."""
    digest = hashlib.sha256()
    for question in (("ls-tree", "-r", "HEAD"), ("diff", "HEAD", "--")):
        digest.update(subprocess.run(["git", *question, *sources], cwd=root, check=True, capture_output=True).stdout)
    return digest.hexdigest()[:16]


class Journal:
    """The verdicts of one run by name; without a file, they are kept nowhere."""

    def __init__(self, path: Path | None, options: dict[str, Any], sources: tuple[str, ...] = SOURCES) -> None:
        """Read the verdicts that stand in the file. Start it again, and say so, if they are of another state."""
        self.path = path
        self.verdicts: dict[str, Any] = {}
        if path is None:
            return
        head = json.loads(json.dumps([state_of_sources(sources), options]))
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        if lines[:1] == [head]:
            self.verdicts = dict(lines[1:])
            return
        if lines:
            print(f"oracle: {path} has verdicts of {lines[0]}, this is {head}: it starts again", file=sys.stderr)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        self._append(head)

    def record(self, name: str, verdict: Any) -> None:
        """Add a verdict, on the disk before this returns."""
        self.verdicts[name] = verdict
        if self.path is not None:
            self._append([name, verdict])

    def _append(self, line: list[Any]) -> None:
        with self.path.open("a") as file:  # type: ignore[union-attr]
            file.write(json.dumps(line) + "\n")
