"""The report of ``make bench``: a page of Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.machine import processor

HEAD = """\
Written by `make bench ARGS="--report docs/reports/cpu.md"`. Times are of one call. A ratio is the time of ours / the
time of PyTorch's, each side in a process of its own, taking turns in one run; the smallest times count. Compiled
functions of ours are compared with PyTorch's eager ones."""


def write(path: Path, results: Sequence[Mapping[str, Any]], versions: str, load: tuple[float, float]) -> None:
    """Write the table. ``versions`` names the peer, ``load`` is the machine's load before and after."""
    facts = {
        "date": f"{date.today()}",
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "load before and after": f"{load[0]:.1f} and {load[1]:.1f}",
        "Python": f"{platform.python_version()}, {platform.system()}",
        "peer": versions,
    }
    lines = ["# The device cpu beside PyTorch", "", HEAD, "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in facts.items()]
    lines += ["", "| case | ours, µs | PyTorch, µs | ratio | mark | goal | holds |", "|---|--:|--:|--:|--:|--:|---|"]
    lines += [_row(result) for result in results]
    path.write_text("\n".join(lines) + "\n")


def _row(result: Mapping[str, Any]) -> str:
    case, ours, peer = result["case"], result["ours"], result["peer"]
    mark = "" if case.mark is None else f"{case.mark:.2f}"
    goal = "" if case.goal is None else f"{case.goal:.2f}"
    holds = "" if case.mark is None else "yes" if ours / peer <= case.mark else "**no**"
    name = case.name.replace("|", "\\|")
    return f"| {name} | {ours * 1e6:.2f} | {peer * 1e6:.2f} | {ours / peer:.2f} | {mark} | {goal} | {holds} |"
