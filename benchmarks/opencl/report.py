"""The report of the measurements, as JSON and as a page of Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.opencl.cases import Compared

PEERS = {"torch": "PyTorch on the processor", "pyopencl": "pyopencl.array", "tinygrad": "tinygrad on OpenCL"}

HEAD = """\
Written by `make bench-opencl`. Times are of one call. A ratio is the time of ours / the time of theirs, each side in a
process of its own, taking turns in one run. The smallest times count, since whatever else a machine does only adds to
them; the ratio of the medians beside them tells how quiet it was."""


class Measured(NamedTuple):
    """The times of both sides in seconds, one per turn; empty for a peer that is missing or failed."""

    case: Compared
    ours: Sequence[float]
    theirs: Sequence[float]
    trouble: str = ""

    @property
    def ratio(self) -> float | None:
        """The ratio of the smallest times, because disturbances only increase a time."""
        return min(self.ours) / min(self.theirs) if self.ours and self.theirs else None

    @property
    def middle(self) -> float | None:
        """The ratio of the medians."""
        return median(self.ours) / median(self.theirs) if self.ours and self.theirs else None

    def holds(self, slack: float) -> bool | None:
        """Return whether the mark holds, or None if the case has no mark or the peer no time."""
        if self.case.limit is not None:
            return min(self.ours) * 1e6 <= self.case.limit * slack if self.ours else None
        if self.case.mark is None or self.ratio is None:
            return None
        return self.ratio <= self.case.mark * slack

    def row(self, slack: float) -> dict[str, Any]:
        """Return the row of the JSON file."""
        case = self.case
        return {
            "case": case.name,
            "peer": case.peer,
            "ours_us": [round(t * 1e6, 3) for t in self.ours],
            "peer_us": [round(t * 1e6, 3) for t in self.theirs],
            "ratio": self.ratio,
            "ratio_of_medians": self.middle,
            "mark": case.mark,
            "goal": case.goal,
            "limit_us": case.limit,
            "slack": slack,
            "holds": self.holds(slack),
            "trouble": self.trouble,
        }


def write(folder: Path, slug: str, facts: Mapping[str, str], measured: Sequence[Measured], slack: float) -> Path:
    """Write ``opencl-<slug>-<date>.json`` and ``.md``, and return the path of the page."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / f"opencl-{slug}-{date.today().isoformat()}.md"
    rows = [one.row(slack) for one in measured]
    page.with_suffix(".json").write_text(json.dumps({"facts": dict(facts), "rows": rows}, indent=1) + "\n", "utf-8")
    page.write_text(text(facts, measured, slack), "utf-8")
    return page


def text(facts: Mapping[str, str], measured: Sequence[Measured], slack: float) -> str:
    """Return the page."""
    parts = [f"# OpenCL by {facts['driver']}, {date.today().isoformat()}\n"]
    parts.append(HEAD)
    if slack != 1.0:
        parts.append(f"Marks are multiplied by {slack:g} for this implementation.")
    parts.append("\n| | |\n|---|---|")
    parts += [f"| {name} | {value} |" for name, value in facts.items()]
    for peer, title in PEERS.items():
        those = [one for one in measured if one.case.peer == peer]
        if those:
            parts.append(f"\n## Beside {title}\n")
            parts.append("| case | ours | theirs | ratio | of medians | mark | goal | holds |")
            parts.append("|---|--:|--:|--:|--:|--:|--:|---|")
            parts += [_line(one, slack) for one in those]
    missed = [one.case.name for one in measured if one.holds(slack) is False]
    parts.append(f"\n{'Every mark that was measured holds.' if not missed else 'Missed: ' + '; '.join(missed) + '.'}")
    troubles = [f"- {one.case.name}, {one.case.peer}: {one.trouble}" for one in measured if one.trouble]
    if troubles:
        parts += ["\nNot measured:\n", *troubles]
    return "\n".join(parts) + "\n"


def _line(one: Measured, slack: float) -> str:
    case, held = one.case, one.holds(slack)
    mark = f"≤ {case.limit * slack:g} µs" if case.limit else "" if case.mark is None else f"{case.mark * slack:.2f}"
    cells = (
        case.name, _time(one.ours), _time(one.theirs), _number(one.ratio), _number(one.middle), mark,
        _number(case.goal), "" if held is None else "yes" if held else "**no**",
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _number(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"


def _time(times: Sequence[float]) -> str:
    """Return the smallest time with its unit."""
    if not times:
        return "–"
    best = min(times)
    return f"{best * 1e3:.2f} ms" if best >= 1e-3 else f"{best * 1e6:.2f} µs"


def slug_of(platform: str, driver: str) -> str:
    """Return a short name of an implementation: ``pocl-3.1``, ``intel-2026.22``."""
    known = {"Portable Computing Language": "pocl"}
    name = known.get(platform, re.sub(r"\(r\)|\(tm\)|opencl|corporation", "", platform, flags=re.I))
    release = re.match(r"\d+(\.\d+)?(-?rc\d+)?", driver)
    words = [*re.findall(r"[a-z0-9]+", name.lower()), release[0] if release else driver]
    return re.sub(r"[^a-z0-9.-]+", "-", "-".join(words).lower())
