"""``make bench``: ours and PyTorch's times, taking turns, each in a process of its own; prints ratios.

Usage: ``python -m benchmarks [--peer PYTHON] [--rounds N] [--only TEXT] [--json FILE]``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.cases import CASES, Case

WORKER = Path(__file__).with_name("worker.py")


class Side:
    """A worker process that measures one library."""

    def __init__(self, python: str, library: str) -> None:
        self.library = library
        self.process = subprocess.Popen(
            [python, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def time(self, case: Case, seconds: float) -> float:
        """The best time of one call, in seconds; RuntimeError with the worker's words if the case fails there."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        request = {"library": self.library, "setup": case.setup, "statement": case.statement, "seconds": seconds}
        self.process.stdin.write(json.dumps(request) + "\n")
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"{self.library}, {case.name}: {answer['error']}")
        return float(answer["seconds"])


def measure(cases: list[Case], ours: Side, peer: Side, rounds: int) -> list[dict[str, Any]]:
    """Both sides' best over ``rounds`` turns, per case."""
    results = []
    for case in track(cases, description="measuring", console=Console(stderr=True)):
        mine, theirs = [], []
        for _ in range(rounds):
            mine.append(ours.time(case, 0.25))
            theirs.append(peer.time(case, 0.25))
        results.append({"case": case, "ours": min(mine), "peer": min(theirs)})
    return results


def show(results: list[dict[str, Any]]) -> bool:
    """Print the table; True when every mark holds."""
    table = Table("case", "ours, µs", "PyTorch, µs", "ratio", "mark", "goal", title="time of ours / time of PyTorch's")
    kept = True
    for result in results:
        case: Case = result["case"]
        ratio = result["ours"] / result["peer"]
        holds = case.mark is None or ratio <= case.mark
        kept &= holds
        table.add_row(
            case.name, f"{result['ours'] * 1e6:.2f}", f"{result['peer'] * 1e6:.2f}",
            f"[{'green' if holds else 'red'}]{ratio:.2f}[/]",
            "" if case.mark is None else f"{case.mark:.2f}", "" if case.goal is None else f"{case.goal:.2f}",
        )  # fmt: skip
    Console(width=120).print(table)
    return kept


def main() -> int:
    """Measure, print, and (with ``--json``) write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default=".venv-peer/bin/python", help="a Python with PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    cases = [case for case in CASES if arguments.only in case.name]
    ours, peer = Side(sys.executable, "candelabra"), Side(arguments.peer, "torch")
    results = measure(cases, ours, peer, arguments.rounds)
    kept = show(results)
    if arguments.json:
        rows = [{"case": r["case"].name, "ours_us": r["ours"] * 1e6, "peer_us": r["peer"] * 1e6} for r in results]
        Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")
    print("every mark holds" if kept else "a mark does not hold: see the red ratios")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
