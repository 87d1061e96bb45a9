"""The report of ``make cuda-check``: a JSON file that grows part by part, and the same in words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
Part = dict[str, Any]


def part(verdict: str, said: str, **detail: Any) -> Part:
    """What came of one part: a verdict, a sentence, and its figures."""
    return {"verdict": verdict, "said": said, **detail}


def slug(chip: str) -> str:
    """``NVIDIA H200`` as ``h200``: the part of a file's name that says which chip."""
    return re.sub(r"[^a-z0-9]+", "-", chip.lower().replace("nvidia", "").replace("geforce", "")).strip("-")


class Report:
    """What is known of one device on one day. Parts that ran before stay, unless they run again."""

    def __init__(self, folder: Path, device_type: str, facts: Mapping[str, str], date: str) -> None:
        self.path = folder / f"{device_type}-{slug(facts['chip'])}-{date}.json"
        self.content: dict[str, Any] = {"device": device_type, "date": date, "parts": {}}
        if self.path.exists():
            self.content = json.loads(self.path.read_text(encoding="utf-8"))
        self.content["facts"] = {**self.content.get("facts", {}), **facts}

    @property
    def parts(self) -> dict[str, Part]:
        """Its parts by name, in the order in which they ran first."""
        found: dict[str, Part] = self.content["parts"]
        return found

    def add(self, name: str, part: Part) -> None:
        """Put a part in, and write both files: what ran is kept whatever becomes of the rest."""
        self.parts[name] = part
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        self.path.with_suffix(".md").write_text(markdown(self.content), encoding="utf-8")

    def passed(self) -> bool:
        """Whether nothing failed. What could not run is no failure; the report says so."""
        return all(part["verdict"] != FAILED for part in self.parts.values())


def markdown(content: Mapping[str, Any]) -> str:
    """The report in words."""
    facts, parts = content["facts"], content["parts"]
    lines = [f"# {content['device']} on {facts['chip']}, {content['date']}", ""]
    lines += ["| | |", "|---|---|", *(f"| {name} | {cell(value)} |" for name, value in facts.items()), ""]
    lines += ["| part | verdict | |", "|---|---|---|"]
    lines += [f"| {name} | {part['verdict']} | {cell(part['said'])} |" for name, part in parts.items()]
    for name, part in parts.items():
        lines += section(name, part)
    return "\n".join(lines) + "\n"


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
