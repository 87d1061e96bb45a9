"""The report of ``make cuda-check``: a JSON file that grows part by part, and the same as Markdown."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from candelabra_clike.cache import write_atomically

PASSED, FAILED, NOT_RUN, UNFINISHED = "passed", "failed", "not run", "unfinished"
Part = dict[str, Any]


def part(verdict: str, summary: str, **detail: Any) -> Part:
    """Return the result of one part: a verdict, a sentence, and figures."""
    return {"verdict": verdict, "said": summary, **detail}


def slug(chip: str) -> str:
    """Return the name of a chip for file names: ``h200`` for ``NVIDIA H200``."""
    return re.sub(r"[^a-z0-9]+", "-", chip.lower().replace("nvidia", "").replace("geforce", "")).strip("-")


class Report:
    """The results for one device on one day. Parts of earlier runs are kept, unless they run again.

    ``names`` are those of all parts. With ``going_on`` the newest report of the chip, of any day, is continued if parts
    of it remain; with ``fresh`` a new one begins.
    """

    def __init__(
        self,
        folder: Path,
        device_type: str,
        facts: Mapping[str, str],
        date: str,
        names: Sequence[str],
        going_on: bool = False,
        fresh: bool = False,
    ) -> None:
        self.names = names
        name = f"{device_type}-{slug(facts['chip'])}"
        self.path = folder / f"{name}-{date}.json"
        before = sorted(folder.glob(f"{name}-????-??-??.json"))
        if fresh:
            shutil.rmtree(self.state, ignore_errors=True)
        elif going_on and before and remaining(read(before[-1]), names):
            self.path = before[-1]
        self.content: dict[str, Any] = {"device": device_type, "date": date, "parts": {}}
        if self.path.exists() and not fresh:
            self.content = read(self.path)
        self.content["facts"] = {**self.content.get("facts", {}), **facts}

    @property
    def state(self) -> Path:
        """The folder of files that are not for readers: the state for the next run, and output."""
        return self.path.with_suffix(".parts")

    @property
    def part_results(self) -> dict[str, Part]:
        """The results of the parts by name, in the order in which they ran first."""
        found: dict[str, Part] = self.content["parts"]
        return found

    @property
    def remaining(self) -> list[str]:
        """The parts that have not run or are not finished."""
        return remaining(self.content, self.names)

    def add(self, name: str, part: Part) -> None:
        """Add the result of a part and write both files, so that it is kept if later parts fail."""
        self.part_results[name] = part | {"commit": self.content["facts"].get("commit", "")}
        self.content["remaining"] = self.remaining
        text = json.dumps(self.content, indent=1, ensure_ascii=False) + "\n"
        write_atomically(self.path, text.encode("utf-8", "backslashreplace"))
        write_atomically(self.path.with_suffix(".md"), markdown(self.content).encode("utf-8", "backslashreplace"))

    def passed(self) -> bool:
        """Return whether nothing failed. A part that could not run or is not finished is not a failure."""
        return all(part["verdict"] != FAILED and not part.get("failures") for part in self.part_results.values())


def read(path: Path) -> dict[str, Any]:
    """Return a report's content."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def remaining(content: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return those of the parts that the content of a report lacks or that are not finished."""
    parts = content["parts"]
    return [name for name in names if parts.get(name, {"verdict": UNFINISHED})["verdict"] == UNFINISHED]


def markdown(content: Mapping[str, Any]) -> str:
    """Return the report as Markdown."""
    facts, parts = content["facts"], content["parts"]
    lines = [f"# {content['device']} on {facts['chip']}, {content['date']}", ""]
    lines += ["| | |", "|---|---|", *(f"| {name} | {cell(value)} |" for name, value in facts.items()), ""]
    lines += ["| part | verdict | | kernels |", "|---|---|---|---|"]
    for name, part in parts.items():
        other = f" (of commit {part['commit']})" if part.get("commit", "") != facts.get("commit", "") else ""
        lines.append(f"| {name} | {part['verdict']} | {cell(part['said'] + other)} | {kernels(part)} |")
    if content.get("remaining"):
        lines += ["", f"**Still to run:** {'; '.join(content['remaining'])}."]
    for name, part in parts.items():
        lines += section(name, part)
    return "\n".join(lines) + "\n"


def kernels(part: Part) -> str:
    """Return the source of a part's kernels, if it was the first to need any."""
    counts = {"ready": part.get("ready", 0), "compiled": part.get("compilations", 0)}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def section(name: str, part: Part) -> list[str]:
    """Return the section of a part that has more results than a sentence."""
    lines: list[str] = []
    if part.get("failures"):
        lines += ["", *(f"- `{failure}`" for failure in part["failures"])]
    if part.get("rows"):
        lines += ["", *rows_table(part["head"], part["rows"])]
    if part["verdict"] == FAILED and part.get("output"):
        lines += ["", "```", *part["output"], "```"]
    return ["", f"## {name}", *lines] if lines else []


def rows_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table of Markdown."""
    return [
        f"| {' | '.join(head)} |",
        "|" + "---|" * len(head),
        *(f"| {' | '.join(map(cell, row))} |" for row in rows),
    ]


def cell(value: object) -> str:
    """Return a text escaped for a cell of a table."""
    return str(value).replace("|", "\\|").replace("\n", " ")
