"""Write the kill matrix as Markdown and as JSON."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.hunting import KILLED, QUICK_LEVEL, SURVIVED, SYSTEMATIC, VERDICTS, MutantOutcome
from candelabra_conformance.mutants.systematic.equivalent import NO_FAULT, TRIED
from candelabra_conformance.mutants.systematic.layouts import KINDS

SCHEMA: Final = 2
NAMED, CAUGHT = "◆", "●"


def write(findings: Sequence[MutantOutcome], folder: Path, thorough: bool = False) -> list[Path]:
    """Write ``mutants.md`` and ``mutants.json`` into a folder, and return the paths.

    ``thorough``: every property was asked whether it catches a mutant.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "mutants.md", folder / "mutants.json"]
    written[0].write_text(markdown(findings, thorough), encoding="utf-8")
    written[1].write_text(as_json(findings), encoding="utf-8")
    return written


def as_json(findings: Sequence[MutantOutcome]) -> str:
    """Return the findings with a schema number, in a stable order, without times, so that reports can be compared."""
    counts = dict(sorted(Counter(f.verdict for f in findings).items()))
    rows = ",\n".join(json.dumps(_row(f), ensure_ascii=False) for f in sorted(findings, key=_order))
    return f'{{"schema": {SCHEMA}, "counts": {json.dumps(counts)}, "mutants": [\n{rows}\n]}}\n'


def _row(finding: MutantOutcome) -> dict[str, Any]:
    """Return a row of the JSON form without empty fields, so that thousands of them stay readable."""
    left_out = {"seconds", *(("family", "fault", "properties") if finding.family == SYSTEMATIC else ())}
    fields = asdict(finding).items()
    return {k: v for k, v in fields if k not in left_out and v not in ("", {}, ()) and (k, v) != ("differed", True)}


def _order(finding: MutantOutcome) -> tuple[bool, str, str]:
    return finding.family == SYSTEMATIC, finding.family, finding.mutant


def markdown(findings: Sequence[MutantOutcome], thorough: bool = False) -> str:
    """Return a page with the number of caught mutants, the survivors, the matrix, and the systematic mutants."""
    listed = [f for f in sorted(findings, key=_order) if f.family != SYSTEMATIC]
    computed = [f for f in sorted(findings, key=_order) if f.family == SYSTEMATIC]
    lines = [
        "# Mutants of the conformance suite",
        "",
        "A mutant is a deliberately broken backend; the suite has to catch each one, by the case that names its fault.",
        "An operator's *own cases* are those of `--operator X`, X being the operator whose kernel is broken. They",
        "catch a mutant of several kernels if those of each operator catch its broken kernel. *Quick* are the own",
        f"cases that `--quick --level {QUICK_LEVEL}` runs. Written by `make mutants`.",
        "",
        f"**{len(findings):,} mutants: {share(findings, _killed)} killed, {shares(findings)}.**",
        "",
    ]
    if listed:
        lines += ["## By hand", "", *_counted(listed), "", *_survivors(listed), *_matrix(listed, thorough)]
    if computed:
        lines += ["## Computed from the kernel table", "", *_systematic(computed)]
    return "\n".join(lines).rstrip() + "\n"


def _killed(finding: MutantOutcome) -> bool:
    return finding.verdict != SURVIVED


def share(findings: Sequence[MutantOutcome], caught: Callable[[MutantOutcome], bool]) -> str:
    """Return the share of the findings for which ``caught`` holds, rounded down to a tenth of a percent."""
    return f"{math.floor(1000 * sum(map(caught, findings)) / max(len(findings), 1)) / 10:g} %"


def shares(findings: Sequence[MutantOutcome]) -> str:
    """Return the shares that are caught by own cases and by quick ones."""
    own, quick = share(findings, lambda f: f.own), share(findings, lambda f: f.quick)
    return f"{own} by the operators' own cases, {quick} by the quick ones"


def _counted(findings: Sequence[MutantOutcome]) -> list[str]:
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for f in findings:
        for name in (f.family, "**all**"):
            rows[name][f.verdict] += 1
            rows[name]["own"] += f.own
            rows[name]["quick"] += f.quick
    lines = [
        "| family | mutants | killed by the case that names the fault | by another | survived | by own cases | quick |",
        "|" + "---|" * 7,
    ]
    families = sorted(rows, key=lambda name: (name == "**all**", name))
    for name in families:
        c = rows[name]
        each = (sum(c[v] for v in VERDICTS), *(c[v] for v in (*VERDICTS, "own", "quick")))
        lines.append(f"| {name} | " + " | ".join(map(str, each)) + " |")
    return lines


def _survivors(findings: Sequence[MutantOutcome]) -> list[str]:
    lines = []
    for f in findings:
        if f.verdict != KILLED:
            due = " ".join(f"`{p}`" for p in load()[f.mutant].caught_by)
            by = f"caught by `{f.caught_by}`" if f.caught_by else "**survived**"
            lines.append(f"- {f.mutant} ({f.family}): {by}, {due} was to catch it. {f.fault}")
    found = ["Not killed by the case that names the fault:", "", *lines, ""] if lines else []
    missed = [_missed(f) for f in findings if not f.own]
    found += ["Not killed by the operators' own cases:", "", *missed, ""] if missed else []
    slow = [f"`{f.mutant}`" for f in findings if not f.quick]
    return found + (["Not killed by the quick cases:", "", ", ".join(slow), ""] if slow else [])


def _missed(finding: MutantOutcome) -> str:
    of = f", in {', '.join(finding.missed)}" if finding.missed else ""
    return f"- {finding.mutant} ({finding.family}){of}. {finding.fault}"


def _matrix(findings: Sequence[MutantOutcome], thorough: bool) -> list[str]:
    tried = "" if thorough else " Properties after the first one that catches a mutant were not tried."
    columns = _columns(findings)
    lines = [
        f"{NAMED}: caught by the case that names the fault; {CAUGHT}: caught by another.{tried}",
        "",
        "| mutant | " + " | ".join(("own", "quick", *columns)) + " |",
        "|---|" + ":-:|" * (2 + len(columns)),
    ]
    family = ""
    for f in findings:
        if f.family != family:
            family = f.family
            lines.append(f"| **{family}** |" + " |" * (2 + len(columns)))
        cells = ("yes" if f.own else "**no**", "yes" if f.quick else "no", *(_cell(f, column) for column in columns))
        lines.append(f"| {f.mutant} | " + " | ".join(cells) + " |")
    lines += ["", "What is wrong with each:", ""]
    lines += [f"- `{f.mutant}`: {f.fault} Caught by `{f.caught_by or 'nothing'}`." for f in findings]
    return [*lines, ""]


def _columns(findings: Sequence[MutantOutcome]) -> list[str]:
    """Return the properties that caught a mutant, those that caught most first; those of the device share a column."""
    caught = Counter(column for f in findings for column in {_column(name) for name in f.properties})
    return sorted(caught, key=lambda column: (-caught[column], column))


def _column(name: str) -> str:
    return name.split(" ")[0]


def _cell(finding: MutantOutcome, column: str) -> str:
    mutant = load()[finding.mutant]
    cases = [case for name, case in finding.properties.items() if _column(name) == column]
    if not cases:
        return ""
    return NAMED if any(mutant.named_by(case) for case in cases) else CAUGHT


def _systematic(findings: Sequence[MutantOutcome]) -> list[str]:
    """Return the counts by kind of fault, and the survivors. Only own cases run on these mutants."""
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for f in findings:
        for name in (_kind(f.fault), "**all**"):
            rows[name][_outcome(f)] += 1
            rows[name]["quick"] += f.quick
    lines = [
        "| fault | mutants | killed by own cases | quick | gave other bits and survived | never gave other bits |",
        "|" + "---|" * 6,
    ]
    for name in sorted(rows, key=lambda name: (name == "**all**", name)):
        c = rows[name]
        each = (c.total() - c["quick"], c[KILLED], c["quick"], c["unseen"], c["equal"])
        lines.append(f"| {name} | " + " | ".join(map(str, each)) + " |")
    for outcome, words in (
        ("unseen", "Gave other bits and survived: a check is missing."),
        ("equal", "Never gave other bits: no sample reaches the fault."),
    ):
        found = [f"`{f.mutant}`" for f in findings if _outcome(f) == outcome]
        lines += ["", words, "", ", ".join(found) if found else "None."]
    lines += ["", "Not killed by the quick cases:", ""]
    slow = Counter(_kind(f.fault) for f in findings if not f.quick)
    lines.append(", ".join(f"{fault} ({n})" for fault, n in slow.most_common()) or "None.")
    return [*lines, "", "No faults, and therefore not among the mutants:", "", *_no_faults()]


def _kind(fault: str) -> str:
    """Return the words of a table for the faults of one parameter each."""
    subject = fault.removesuffix(" ignored")
    if subject == fault or subject in (*KINDS, "strides", "offsets"):
        return fault
    if subject.startswith("strides of "):
        return "strides of one operand ignored"
    return "a parameter ignored" if " " not in subject else fault


def _no_faults() -> list[str]:
    listed = [f"- {fault}, since {reason}: {operators.replace(' ', ', ')}." for fault, reason, operators in NO_FAULT]
    return [*listed, *(f"- {words}." for words in TRIED)]


def _outcome(finding: MutantOutcome) -> str:
    if finding.verdict != SURVIVED:
        return KILLED
    return "unseen" if finding.differed else "equal"
