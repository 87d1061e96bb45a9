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
Written by `make bench ARGS="--report FILE"`. Times are of one call. A ratio is the time of ours / the
time of PyTorch's, each side in a process of its own, taking turns in one run; the smallest times count. Compiled
functions of ours are compared with PyTorch's eager ones. With `--compilers`, the last columns are the ratios of other
compilers to PyTorch's eager functions, in the same run."""


def compilers_of(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the compilers that ran at least one case."""
    return list(dict.fromkeys(name for result in results for name in result.get("compilers", ())))


def ratio_of(result: Mapping[str, Any], name: str) -> str:
    """Return a compiler's time / the time of PyTorch's eager function, as text; empty if it did not run the case."""
    time = result.get("compilers", {}).get(name)
    return "" if time is None else f"{time / result['peer']:.2f}"


def write(path: Path, results: Sequence[Mapping[str, Any]], versions: str, load: tuple[float, float]) -> None:
    """Write the table. ``versions`` names the peer, ``load`` is the machine's load before and after."""
    facts = {
        "date": f"{date.today()}",
        "processor": f"{processor()}, {os.cpu_count()} cores",
        "load before and after": f"{load[0]:.1f} and {load[1]:.1f}",
        "Python": f"{platform.python_version()}, {platform.system()}",
        "peer": versions,
    }
    names = compilers_of(results)
    title = "Compiled functions beside PyTorch and other compilers" if names else "The device cpu beside PyTorch"
    lines = [f"# {title}", "", HEAD, "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in facts.items()]
    columns = ["case", "ours, µs", "PyTorch, µs", "ratio", "mark", "goal", "holds", *names]
    lines += ["", _cells(columns), "|---|--:|--:|--:|--:|--:|---|" + "--:|" * len(names)]
    lines += [_row(result, names) for result in results]
    path.write_text("\n".join(lines) + "\n")


def _row(result: Mapping[str, Any], names: Sequence[str]) -> str:
    case, ours, peer = result["case"], result["ours"], result["peer"]
    mark = "" if case.mark is None else f"{case.mark:.2f}"
    goal = "" if case.goal is None else f"{case.goal:.2f}"
    holds = "" if case.mark is None else "yes" if ours / peer <= case.mark else "**no**"
    times = [f"{ours * 1e6:.2f}", f"{peer * 1e6:.2f}", f"{ours / peer:.2f}"]
    others = [ratio_of(result, name) for name in names]
    return _cells([case.name.replace("|", "\\|"), *times, mark, goal, holds, *others])


def _cells(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"
