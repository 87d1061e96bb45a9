"""Write the kill matrix as Markdown and as JSON."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from candelabra_conformance.model import DEVICE
from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.hunting import ELSEWHERE, KILLED, SURVIVED, SYSTEMATIC, Finding

SCHEMA: Final = 1
COLUMNS: Final = (
    "value", "result", "special", "inputs", "aliasing", "inplace", "out", "gradient", "gradient2", "inplace-gradient",
    "errors", "unclaimed", "determinism", "threads", DEVICE,
)  # fmt: skip
"""The properties in the matrix; those of the device share a column."""
NAMED, CAUGHT = "◆", "●"


def write(findings: Sequence[Finding], folder: Path) -> list[Path]:
    """Write ``mutants.md`` and ``mutants.json`` into a folder, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "mutants.md", folder / "mutants.json"]
    written[0].write_text(markdown(findings), encoding="utf-8")
    written[1].write_text(as_json(findings), encoding="utf-8")
    return written


def as_json(findings: Sequence[Finding]) -> str:
    """Return the findings with a schema number, in a stable order, without times, so that reports can be compared."""
    counts = dict(sorted(Counter(f.verdict for f in findings).items()))
    rows = ",\n".join(json.dumps(_row(f), ensure_ascii=False) for f in sorted(findings, key=_order))
    return f'{{"schema": {SCHEMA}, "counts": {json.dumps(counts)}, "mutants": [\n{rows}\n]}}\n'


def _row(finding: Finding) -> dict[str, Any]:
    """Return a row of the JSON form without empty fields, so that thousands of them stay readable."""
    left_out = {"seconds", *(("family", "fault", "properties") if finding.family == SYSTEMATIC else ())}
    return {k: v for k, v in asdict(finding).items() if k not in left_out and v not in ("", {}, True)}


def _order(finding: Finding) -> tuple[bool, str, str]:
    return finding.family == SYSTEMATIC, finding.family, finding.mutant


def markdown(findings: Sequence[Finding]) -> str:
    """Return a page with the number of caught mutants, the survivors, the matrix, and the systematic mutants."""
    listed = [f for f in sorted(findings, key=_order) if f.family != SYSTEMATIC]
    computed = [f for f in sorted(findings, key=_order) if f.family == SYSTEMATIC]
    lines = [
        "# Mutants of the conformance suite",
        "",
        "A mutant is a deliberately broken backend; the suite has to catch each one, by the case that names its fault.",
        "Written by `make mutants`.",
        "",
    ]
    if listed:
        lines += ["## By hand", "", *_counted(listed), "", *_survivors(listed), *_matrix(listed)]
    if computed:
        lines += ["## Computed from the kernel table", "", *_systematic(computed)]
    return "\n".join(lines).rstrip() + "\n"


def _counted(findings: Sequence[Finding]) -> list[str]:
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for f in findings:
        rows[f.family][f.verdict] += 1
        rows["**all**"][f.verdict] += 1
    lines = ["| family | mutants | killed by the case that names the fault | by another | survived |", "|" + "---|" * 5]
    families = sorted(rows, key=lambda name: (name == "**all**", name))
    for name in families:
        c = rows[name]
        lines.append(f"| {name} | {c.total()} | {c[KILLED]} | {c[ELSEWHERE]} | {c[SURVIVED]} |")
    return lines


def _survivors(findings: Iterable[Finding]) -> list[str]:
    lines = []
    for f in findings:
        if f.verdict != KILLED:
            due = " ".join(f"`{p}`" for p in load()[f.mutant].caught_by)
            by = f"caught by `{f.caught_by}`" if f.caught_by else "**survived**"
            lines.append(f"- {f.mutant} ({f.family}): {by}, {due} was to catch it. {f.fault}")
    return ["Not killed by the case that names the fault:", "", *lines, ""] if lines else []


def _matrix(findings: Sequence[Finding]) -> list[str]:
    lines = [
        f"{NAMED}: caught by the case that names the fault; {CAUGHT}: caught by another.",
        "",
        "| mutant | " + " | ".join(COLUMNS) + " |",
        "|---|" + ":-:|" * len(COLUMNS),
    ]
    family = ""
    for f in findings:
        if f.family != family:
            family = f.family
            lines.append(f"| **{family}** |" + " |" * len(COLUMNS))
        lines.append(f"| {f.mutant} | " + " | ".join(_cell(f, column) for column in COLUMNS) + " |")
    lines += ["", "What is wrong with each:", ""]
    lines += [f"- `{f.mutant}`: {f.fault} Caught by `{f.caught_by or 'nothing'}`." for f in findings]
    return [*lines, ""]


def _cell(finding: Finding, column: str) -> str:
    mutant = load()[finding.mutant]
    cases = [case for name, case in finding.properties.items() if name.split(" ")[0] == column]
    if not cases:
        return ""
    return NAMED if any(mutant.named_by(case) for case in cases) else CAUGHT


def _systematic(findings: Sequence[Finding]) -> list[str]:
    """Return the counts by kind of fault, and the survivors."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for f in findings:
        kind = "a parameter ignored" if f.fault.endswith(" ignored") and f.fault != "strides ignored" else f.fault
        for name in (kind, "**all**"):
            rows[name][_outcome(f)] += 1
    lines = ["| fault | mutants | killed | gave other bits and survived | never gave other bits |", "|" + "---|" * 5]
    for name in sorted(rows, key=lambda name: (name == "**all**", name)):
        c = rows[name]
        lines.append(f"| {name} | {c.total()} | {c[KILLED]} | {c['unseen']} | {c['equal']} |")
    for outcome, words in (
        ("unseen", "Gave other bits and survived: a check is missing."),
        ("equal", "Never gave other bits: no sample reaches the fault, or there is none."),
    ):
        found = [f"`{f.mutant}`" for f in findings if _outcome(f) == outcome]
        lines += ["", words, "", ", ".join(found) if found else "None."]
    return [*lines, ""]


def _outcome(finding: Finding) -> str:
    if finding.verdict != SURVIVED:
        return KILLED
    return "unseen" if finding.differed else "equal"
