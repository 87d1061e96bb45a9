"""The report of ``make cuda-check``: a JSON file that grows part by part, and the same in words."""

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


def part(verdict: str, said: str, **detail: Any) -> Part:
    """What came of one part: a verdict, a sentence, and its figures."""
    return {"verdict": verdict, "said": said, **detail}


def slug(chip: str) -> str:
    """``NVIDIA H200`` as ``h200``: the part of a file's name that says which chip."""
    return re.sub(r"[^a-z0-9]+", "-", chip.lower().replace("nvidia", "").replace("geforce", "")).strip("-")


class Report:
    """What is known of one device on one day. Parts that ran before stay, unless they run again.

    ``names`` are those of all parts. With ``going_on`` the newest report of the chip is gone on with, whatever its day,
    if something of it is still to run; with ``fresh`` a new one begins.
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
        """The folder of what belongs to the report and is not for readers: what the next run goes on with, output."""
        return self.path.with_suffix(".parts")

    @property
    def parts(self) -> dict[str, Part]:
        """Its parts by name, in the order in which they ran first."""
        found: dict[str, Part] = self.content["parts"]
        return found

    @property
    def remaining(self) -> list[str]:
        """The parts that are still to run, or to be finished."""
        return remaining(self.content, self.names)

    def add(self, name: str, part: Part) -> None:
        """Put a part in, and write both files: what ran is kept whatever becomes of the rest."""
        self.parts[name] = part | {"commit": self.content["facts"].get("commit", "")}
        self.content["remaining"] = self.remaining
        text = json.dumps(self.content, indent=1, ensure_ascii=False) + "\n"
        write_atomically(self.path, text.encode("utf-8", "backslashreplace"))
        write_atomically(self.path.with_suffix(".md"), markdown(self.content).encode("utf-8", "backslashreplace"))

    def passed(self) -> bool:
        """Whether nothing failed. What could not run, or is not finished, is no failure; the report says so."""
        return all(part["verdict"] != FAILED and not part.get("failures") for part in self.parts.values())


def read(path: Path) -> dict[str, Any]:
    """A report's content."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def remaining(content: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Of these parts, those that a report's content lacks or says to be unfinished."""
    parts = content["parts"]
    return [name for name in names if parts.get(name, {"verdict": UNFINISHED})["verdict"] == UNFINISHED]


def markdown(content: Mapping[str, Any]) -> str:
    """The report in words."""
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
    """Where a part had its kernels from, if it was the first to need any."""
    counts = {"ready": part.get("ready", 0), "compiled": part.get("compilations", 0)}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def section(name: str, part: Part) -> list[str]:
    """A part's own section, where it has more to say than a sentence."""
    lines: list[str] = []
    if part.get("failures"):
        lines += ["", *(f"- `{failure}`" for failure in part["failures"])]
    if part.get("rows"):
        lines += ["", *rows_table(part["head"], part["rows"])]
    if part["verdict"] == FAILED and part.get("output"):
        lines += ["", "```", *part["output"], "```"]
    return ["", f"## {name}", *lines] if lines else []


def rows_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of Markdown."""
    return [
        f"| {' | '.join(head)} |",
        "|" + "---|" * len(head),
        *(f"| {' | '.join(map(cell, row))} |" for row in rows),
    ]


def cell(value: object) -> str:
    """A text that breaks no table."""
    return str(value).replace("|", "\\|").replace("\n", " ")
