"""A run as Markdown: a summary for continuous integration, as a comment or a job summary.

The tables are GitHub's (GFM). All text of the run is escaped, so that no message can break them. The sections that grow
with the number of cases are truncated and state how much was omitted, since GitHub refuses a summary over 1 MiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from candelabra_conformance.causes import CauseGroup, declined, grouped
from candelabra_conformance.model import LEVELS, VERDICTS, Result, Run
from candelabra_conformance.report import tally

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|#~&$])")
_LONGEST: Final = 4000
"""The maximum number of characters of one message or program; the JSON has the full text."""


def to_markdown(run: Run, failures: int = 20, errors: int = 20) -> str:
    """Return the summary of `run`, with the first `failures` failures and the `errors` largest errors.

    Characters that UTF-8 cannot encode (half a surrogate pair) are escaped as in Python.
    """
    sections = [
        _head(run),
        _obstacles(run, failures),
        _flushed(run),
        _verdicts(run),
        _failures(run, failures),
        _blockers(run),
        _kernels(run),
        _declined(run, failures),
        _routes(run),
        _errors(run, errors),
        _without_samples(run),
        _stale(run),
    ]
    joined = "\n\n".join(section for section in sections if section) + "\n"
    return joined.encode("utf-8", "backslashreplace").decode("utf-8")


# Elements that other reports in Markdown use too


def escape(text: str) -> str:
    """Return `text` on one line, escaped: it contains no markup, no link and no end of a cell."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Return `text` as code inside a line or a table cell."""
    shown = " ".join(text.split()).replace("|", "\\|")
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {shown} {fence}" if longest else f"`{shown}`"


def block(text: str, language: str = "") -> str:
    """Return `text` as a code block, fenced by more backticks than it contains."""
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}\n… {len(text) - _LONGEST} more characters"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], right: int = 0) -> str:
    """Return a table of cells that are Markdown already. Columns are right-aligned from the column `right`, for 0
    none."""
    rule = ["---:" if right and at >= right else "---" for at in range(len(head))]
    lines = [head, rule, *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def folded(title: str, text: str) -> str:
    """Return `text` folded behind a title that opens it. `title` is HTML."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


# Sections


def _head(run: Run) -> str:
    subject = run.subject
    verdict = "conforms" if run.conforms else "does not conform"
    lines = [
        f"## {'✅' if run.conforms else '❌'} {escape(subject.device)} {verdict}: {tally.standing(run)}",
        escape(tally.subject_text(run)),
        f"{tally.many(len(run.results), 'case')} in {tally.seconds_text(run.seconds)}, started {escape(run.started)}",
        tally.remaining_text(run),
    ]
    return "\n\n".join(filter(None, lines))


def _obstacles(run: Run, limit: int) -> str:
    found = tally.obstacles(run)
    if not found:
        return ""
    title = "What does not pass" if run.selected else f"Why level {run.required} is not reached"
    lines = [f"- {escape(line[:_LONGEST])}" for line in found[:limit]]
    rest = [f"- … and {len(found) - limit} more"] if len(found) > limit else []
    return "\n".join([f"### {title}\n", *lines, *rest])


def _flushed(run: Run) -> str:
    found = tally.flushed_text(run)
    return f"### A capability to check\n\n{escape(found)}" if found else ""


def _verdicts(run: Run) -> str:
    shown = [verdict for verdict in VERDICTS if any(result.verdict == verdict for result in run.results)]
    by_level = {f"{level}: {escape(LEVELS[level])}": found for level, found in tally.counts_by_level(run).items()}
    by_property = tally.counts_by(run.results, lambda result: result.case.property)
    parts = ["### Verdicts", _counts("level", by_level | {"**all**": tally.counts(run.results)}, shown)]
    named = {code(name): found for name, found in by_property.items()}
    return "\n\n".join([*parts, _counts("property", named, shown)])


def _counts(name: str, groups: dict[str, dict[str, int]], shown: list[str]) -> str:
    rows = [[group, *(found.get(verdict, "") for verdict in shown)] for group, found in groups.items()]
    return table([name, *shown], rows, right=1)


def _failures(run: Run, limit: int) -> str:
    groups = grouped(run.results)
    if not groups:
        return ""
    shown = [_failure(group) for group in groups[:limit]]
    left = sum(len(group.results) for group in groups[limit:])
    rest = [f"… and {tally.many(left, 'more failure')}: see the JSON or the HTML report."] if left else []
    total = sum(len(group.results) for group in groups)
    title = f"### {tally.many(total, 'failure')} of {tally.many(len(groups), 'cause')}"
    return "\n\n".join([title, *shown, *rest])


def _failure(group: CauseGroup) -> str:
    """Return the first case of a group of failures, under a title with the others."""
    result = group.first
    facts = [f"**{result.verdict}**", code(result.case.id), f"level {result.case.level}"]
    facts += [escape(result.route)] if result.route else []
    facts += [f"{tally.ulp_text(result.ulp)} ULP"] if result.ulp is not None else []
    parts = [f"#### {escape(tally.group_title(group))}", ", ".join(facts)]
    parts += [block(result.message)] if result.message else []
    if result.reproducer:
        parts.append(folded("reproducer", block(result.reproducer, "python")))
    return "\n\n".join(parts)


def _blockers(run: Run) -> str:
    found = tally.blockers(run)
    if not found:
        return ""
    rows = [[code(name), count] for name, count in found[:20]]
    rest = f"\n\n… and {len(found) - 20} more." if len(found) > 20 else ""
    return "### What blocks other cases\n\n" + table(["blocked by", "cases"], rows, right=1) + rest


def _kernels(run: Run) -> str:
    if not run.next_kernels:
        return ""
    rows = [
        [
            code(each.operator), each.state, ", ".join(map(code, each.dtypes)), tally.gain_text(run, each),
            ", ".join(map(code, each.unlocks[:8])) + (" …" if len(each.unlocks) > 8 else ""),
        ]
        for each in run.next_kernels[:10]
    ]  # fmt: skip
    return "### Kernels to write next\n\n" + table(["kernel", "state", "dtypes", "gain", "operators"], rows)


def _declined(run: Run, limit: int) -> str:
    found = declined(run.results)
    if not found:
        return ""
    lines = [f"- {escape(line[:_LONGEST])}" for line in found[:limit]]
    rest = [f"- … and {len(found) - limit} more: see the HTML or the JSON report"] if len(found) > limit else []
    return "\n".join(["### Kernels that declined calls, with the first reason\n", *lines, *rest])


def _routes(run: Run) -> str:
    rows = [[escape(route), cases, operators] for route, (cases, operators) in tally.routes(run).items()]
    return "### Routes\n\n" + table(["route", "cases", "operators"], rows, right=1) if rows else ""


def _errors(run: Run, limit: int) -> str:
    worst = tally.worst_ulps(run)
    if not worst:
        return ""
    rows = [[code(r.case.operator), code(r.case.dtype), tally.ulp_text(r.ulp), code(r.case.id)] for r in worst[:limit]]
    parts = ["### Largest errors", table(["operator", "dtype", "ULP", "case"], rows)]
    if len(worst) > limit:
        parts.append(folded(f"all {len(worst)} pairs of operator and dtype", _error_matrix(worst)))
    return "\n\n".join(parts)


def _error_matrix(worst: list[Result]) -> str:
    dtypes = sorted({result.case.dtype for result in worst}, key=tally.dtype_order)
    cells = {(result.case.operator, result.case.dtype): tally.ulp_text(result.ulp) for result in worst}
    operators = sorted({operator for operator, _ in cells}, key=tally.operator_order)
    rows = [[code(operator), *(cells.get((operator, dtype), "") for dtype in dtypes)] for operator in operators]
    return table(["operator", *(dtype or "any" for dtype in dtypes)], rows, right=1)


def _without_samples(run: Run) -> str:
    names = tally.without_samples(run)
    return "### Public callables without samples\n\n" + ", ".join(map(code, names)) if names else ""


def _stale(run: Run) -> str:
    if not run.stale:
        return ""
    lines = [f"- {code(pattern)}" for pattern in run.stale]
    return "### Expected failures that match nothing any more, or have expired\n\n" + "\n".join(lines)
