"""Measure candelabra and PyTorch in turns, each in its own process, and print the ratios (``make bench``).

Usage: ``python -m benchmarks [--operators] [--peer PYTHON] [--rounds N] [--only TEXT] [--json FILE]
[--report FILE] [--compilers]``. With ``--operators``: ``[--limit RATIO] [--small] [--gradients] [--one-thread]``.
With ``--compilers``, the cases of compiled functions run in ``torch.compile``, JAX and tinygrad, too, if installed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import compilers, operators, report
from benchmarks.cases import CASES, Case
from benchmarks.fused import COMPILING, EAGER, FUSED
from benchmarks.machine import load
from benchmarks.processor import PROCESSOR
from benchmarks.sides import Side
from benchmarks.transforms import TRANSFORMS

SECONDS = 0.125
"""The time of a turn. A shared machine is slower by half for seconds at a time, in all it does. With many short turns,
both sides have some outside such a phase; with three long ones, the ratio of a step of 25 ms varied from 0.6 to 0.9."""


def measure(cases: list[Case], own: Side, peer: Side, rounds: int, pythons: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the best times of both sides over ``rounds`` turns, and of the compilers in ``pythons``, per case."""
    results = []
    for case in track(cases, description="measuring", console=Console(stderr=True)):
        own_times, peer_times = [], []
        for _ in range(rounds):
            own_times.append(own.time(case, SECONDS))
            peer_times.append(peer.time(case, SECONDS))
        others = compilers.measure(case, pythons, rounds) if case in FUSED else {}
        results.append({"case": case, "ours": min(own_times), "peer": min(peer_times), "compilers": others})
    return results


def show(results: list[dict[str, Any]]) -> bool:
    """Print the table. Return whether every mark holds."""
    names = report.compilers_of(results)
    title = "time of ours / time of PyTorch's"
    table = Table("case", "ours, µs", "PyTorch, µs", "ratio", "mark", "goal", *names, title=title)
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
            *(report.ratio_of(result, name) for name in names),
        )  # fmt: skip
    Console(width=120).print(table)
    return kept


def every_operator(arguments: argparse.Namespace) -> int:
    """Measure all operators. Return 1 if one is slow and benchmarks/known_slow.md has no reason for it."""
    sides = operators.sides(sys.executable, arguments.peer, arguments.one_thread)
    work = operators.Work(arguments.only, arguments.small, arguments.gradients)
    rows, unmeasured = operators.measure(*sides, work, 0.03)
    if arguments.json:
        Path(arguments.json).write_text(json.dumps({"rows": rows, "unmeasured": unmeasured}, indent=1) + "\n")
    return 0 if operators.show(rows, unmeasured, arguments.limit) else 1


def version_of(peer: str) -> str:
    """Return the version of PyTorch and its number of threads."""
    program = "import torch; print(f'PyTorch {torch.__version__}, {torch.get_num_threads()} threads')"
    return subprocess.run([peer, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


def main() -> int:
    """Measure and print the times and, with ``--json`` or ``--report``, write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default=".venv-peer/bin/python", help="a Python with PyTorch")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--only", default="", help="cases whose name contains this, or whose group is this")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--report", help="write a page of Markdown to this file")
    parser.add_argument("--operators", action="store_true", help="every operator at its natural large size")
    parser.add_argument("--limit", type=float, default=operators.LIMIT, help="the ratio beyond which they are listed")
    parser.add_argument("--small", action="store_true", help="operators on some 64 elements")
    parser.add_argument("--gradients", action="store_true", help="operators forward and backward")
    parser.add_argument("--one-thread", action="store_true", help="operators by CPU time, in one thread")
    parser.add_argument("--compilers", action="store_true", help="time other compilers beside compiled functions")
    parser.add_argument("--tinygrad", default=".venv-tinygrad/bin/python", help="a Python with tinygrad")
    arguments = parser.parse_args()
    if arguments.operators:
        return every_operator(arguments)
    cases = [
        case
        for case in (*CASES, *PROCESSOR, *TRANSFORMS, *FUSED)
        if arguments.only in case.name or arguments.only == case.group
    ]
    own = Side(sys.executable, "candelabra", prelude=COMPILING)
    peer = Side(arguments.peer, "torch", prelude=EAGER)
    pythons = compilers.pythons(arguments.peer, arguments.tinygrad) if arguments.compilers else {}
    before = load()
    results = measure(cases, own, peer, arguments.rounds, pythons)
    kept = show(results)
    if arguments.report:
        report.write(Path(arguments.report), results, version_of(arguments.peer), (before, load()))
    if arguments.json:
        rows = [
            {"case": r["case"].name, "ours_us": r["ours"] * 1e6, "peer_us": r["peer"] * 1e6}
            | {f"{name}_us": time * 1e6 for name, time in r["compilers"].items()}
            for r in results
        ]
        Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n")
    print("every mark holds" if kept else "a mark does not hold: see the red ratios")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
