"""The comparison of both sides for every mark: rows of figures, and whether the marks hold."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from benchmarks.accelerator.marks import BANDWIDTH, COPY, MARKS, Mark
from benchmarks.accelerator.models import MODELS
from benchmarks.accelerator.sizes import SIZES
from benchmarks.sides import Side

WORKER = ("-m", "benchmarks.accelerator.worker")
ROOT = Path(__file__).resolve().parents[2]
Row = dict[str, Any]
PATIENCE, GRACE = 600.0, 15.0
"""The maximum duration of a measurement, and that after the end of the time, in seconds."""


class Comparison:
    """Two workers on one device, one with candelabra and one with the peer, each in its own process.

    No measurement begins after ``until`` (of ``time.monotonic``).
    """

    def __init__(self, device: str, size: str, rounds: int, until: float = math.inf) -> None:
        self.until = until
        self.device = device
        self.size = size
        self.rounds = rounds
        self.peer_version = ""
        self.sides: list[Side] = []

    def start(self, python: str, peer: str, library: str) -> None:
        """Start both sides. Raise ``RuntimeError`` with the command that installs the peer if it is missing."""
        if not Path(peer).exists():
            raise RuntimeError(
                f"{peer} does not exist, so there is no peer: `make .venv-peer/.peer` installs PyTorch "
                "there, or pass a Python that has it (make cuda-check PEER=/usr/bin/python3)"
            )
        self.ours = Side(python, "candelabra", worker=WORKER, folder=ROOT)
        self.peer = Side(peer, library, worker=WORKER, folder=ROOT)
        self.sides = [self.ours, self.peer]
        answer = self._asked(self.peer, version=True)
        if "error" in answer:
            raise RuntimeError(
                f"{peer} cannot be compared with on {self.device} ({answer['error']}): "
                f"{peer} -m pip install torch, in the build for this device's driver"
            )
        self.peer_version = f"{library} {answer['version']}"

    def close(self) -> None:
        """End both processes."""
        for side in self.sides:
            side.close()

    def _asked(self, side: Side, **request: Any) -> dict[str, Any]:
        patience = min(PATIENCE, max(self.until - time.monotonic(), 0.0) + GRACE)
        answer = side.ask({"library": side.library, "device": self.device, "size": self.size, **request}, patience)
        if "error" in answer:
            side.restart()
        return answer

    def measured(
        self, only: str = "", known: Sequence[Row] = (), report: Callable[[list[Row]], object] = lambda rows: None
    ) -> list[Row]:
        """Return a row for each mark whose name contains ``only``, and for the waits of each model.

        ``known`` rows are not measured again. ``report`` is called with all rows after each measurement.
        """
        rows = {row["name"]: row for row in known}
        requested = self.requested(only)
        for name in track([name for name in requested if name not in rows], "measuring", console=Console(stderr=True)):
            if time.monotonic() >= self.until:
                break
            row = requested[name]()
            if "error" in row and time.monotonic() >= self.until:
                break  # the measurement may only have lacked time
            rows[name] = row
            report(self._judged([rows[each] for each in requested if each in rows]))
        return self._judged([rows[each] for each in requested if each in rows])

    def requested(self, only: str) -> dict[str, Callable[[], Row]]:
        """Return, by name, the functions that measure the requested rows."""
        marks = [m for m in MARKS.values() if only in m.name or (only and m.group == "bandwidth" and m.name == COPY)]
        models = [model for model in MODELS if only in f"{model} waits"]
        result: dict[str, Callable[[], Row]] = {mark.name: partial(self._row, mark) for mark in marks}
        return result | {f"{model} waits": partial(self._waits, model) for model in models}

    @staticmethod
    def _judged(rows: list[Row]) -> list[Row]:
        """Return the rows; those of bandwidth-bound operators are compared with the bandwidth of the copy."""
        best = max((row.get("gigabytes_per_second", 0) for row in rows if row["name"] == COPY), default=0)
        for row in rows:
            if "gigabytes_per_second" in row and row["name"] != COPY and best:
                row["of_copy"] = row["ours_gigabytes_per_second"] / best
                row["kept"] = row["of_copy"] >= BANDWIDTH
        return rows

    def _row(self, mark: Mark) -> Row:
        row: Row = {"name": mark.name, "group": mark.group, "most": mark.most, "goal": mark.goal, "kept": False}
        times: dict[str, list[float]] = {"ours": [], "peer": []}
        for _ in range(self.rounds):
            for key, side in (("ours", self.ours), ("peer", self.peer)):
                answer = self._asked(side, mark=mark.name)
                if "error" in answer:
                    return row | {"error": f"{side.library}: {answer['error']}"}
                times[key].append(answer["seconds"])
        ours, peer = min(times["ours"]), min(times["peer"])
        row |= {"ours": ours, "peer": peer, "ratio": ours / peer, "kept": mark.most is None or ours / peer <= mark.most}
        if mark.moved is not None:
            moved = mark.moved(SIZES[self.size]) * 1e-9
            row["ours_gigabytes_per_second"] = moved / ours
            row["gigabytes_per_second"] = moved / min(ours, peer)
        return row

    def _waits(self, model: str) -> Row:
        answer = self._asked(self.ours, waits=model)
        row: Row = {"name": f"{model} waits", "group": "waiting for the device", "kept": answer.get("waits") == {}}
        return row | answer


def kept(rows: Sequence[Row]) -> bool:
    """Return whether everything was measured and every mark holds."""
    return all(row["kept"] for row in rows)


def cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row: name, both times in µs, the ratio or its replacement, the mark, the goal."""
    name = f"{row['name']}"
    if "error" in row:
        return name, "", "", "not measured: " + row["error"], "", ""
    if "waits" in row:
        where = "; ".join(f"{part}: {place}" for part, place in row["waits"].items())
        return name, "", "", where or "never", "never", ""
    times = f"{row['ours'] * 1e6:.2f}", f"{row['peer'] * 1e6:.2f}"
    if "of_copy" in row:
        return name, *times, f"{row['of_copy']:.0%} of a copy's bandwidth ({row['ratio']:.2f})", f"{BANDWIDTH:.0%}", ""
    if row["name"] == COPY:
        return name, *times, f"{row['gigabytes_per_second']:.0f} GB/s ({row['ratio']:.2f})", "", ""
    limits = tuple("" if row[key] is None else f"{row[key]:.2f}" for key in ("most", "goal"))
    return name, *times, f"{row['ratio']:.2f}", *limits


HEAD = ("case", "ours, µs", "peer, µs", "ratio", "mark", "goal")


def table(rows: Sequence[Row], device: str) -> Table:
    """Return the table for a terminal."""
    result = Table(*HEAD, title=f"time of ours / time of the peer's, {device}")
    for row in rows:
        name, own, peer, ratio, *limits = cells(row)
        result.add_row(name, own, peer, f"[{'green' if row['kept'] else 'red'}]{escape(ratio)}[/]", *limits)
    return result
