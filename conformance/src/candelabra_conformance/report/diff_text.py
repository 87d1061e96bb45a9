"""Write the difference of two runs as text and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from candelabra_conformance.model import BAD, Result
from candelabra_conformance.report import tally
from candelabra_conformance.report.diff import Change, Difference
from candelabra_conformance.report.markdown import block, code, escape


@dataclass(frozen=True)
class _List:
    """One list of a difference: its title, and for each entry an id, a phrase, and a message that explains it."""

    title: str
    entries: tuple[tuple[str, str, str], ...]


def text(difference: Difference, limit: int = 20) -> str:
    """Return the difference for a terminal or a log, with the first `limit` entries of each list."""
    lines = [_verdict(difference), *_subjects(difference)]
    for each in _lists(difference):
        lines += ["", f"{each.title}: {len(each.entries)}"]
        for case, phrase, message in each.entries[:limit]:
            lines.append(f"  {case}: {phrase}")
            lines += [f"      {line}" for line in message.splitlines()[:6]]
        if len(each.entries) > limit:
            lines.append(f"  … and {len(each.entries) - limit} more")
    return "\n".join(lines) + "\n"


def markdown(difference: Difference, limit: int = 20) -> str:
    """Return the difference as Markdown, with the first `limit` entries of each list."""
    parts = [f"## {'❌' if difference.regressed else '✅'} {escape(_verdict(difference))}"]
    parts += ["\n".join(f"- {escape(line)}" for line in _subjects(difference))]
    for each in _lists(difference):
        parts.append(f"### {each.title.capitalize()}: {len(each.entries)}")
        entries = [
            f"- {code(case)}: {escape(phrase)}" + (f"\n\n{_indented(block(message))}\n" if message else "")
            for case, phrase, message in each.entries[:limit]
        ]
        parts.append("\n".join(entries))
        if len(each.entries) > limit:
            parts.append(f"… and {len(each.entries) - limit} more")
    return "\n\n".join(part.rstrip() for part in parts if part) + "\n"


def _indented(lines: str) -> str:
    return "\n".join(f"  {line}" for line in lines.split("\n"))


def _verdict(difference: Difference) -> str:
    before, after = tally.level_text(difference.before.level), tally.level_text(difference.after.level)
    level = f"level {after}" if before == after else f"level {before} → {after}"
    if difference.before.selected or difference.after.selected:
        level = "selected cases"
    outcome = (
        f"{tally.many(len(difference.regressions), 'regression')}, {tally.many(len(difference.fixes), 'fix', 'fixes')}"
    )
    return f"{difference.after.subject.device}: {level}, {outcome} in {tally.many(difference.compared, 'common case')}"


def _subjects(difference: Difference) -> Iterator[str]:
    for name, (before, after) in difference.other_facts.items():
        yield f"{name.replace('_', ' ')}: {before or 'none'} → {after or 'none'}"
    if difference.before.options != difference.after.options:
        yield f"options differ: {dict(difference.before.options)} → {dict(difference.after.options)}"


def _lists(difference: Difference) -> list[_List]:
    """Return the non-empty lists, the most urgent first."""
    red = [result for result in difference.appeared if result.verdict in BAD]
    lists = [
        _changes("regressions", difference.regressions, _verdicts),
        _results("new cases that fail", red),
        _changes("fixes", difference.fixes, _verdicts),
        _changes("cases further from the device's own kernel", difference.worse_routes, _routes),
        _changes("cases nearer to the device's own kernel", difference.better_routes, _routes),
        _changes("errors that grew", difference.larger_errors, _errors),
        _changes("errors that shrank", difference.smaller_errors, _errors),
        _changes("other changes of verdict", difference.other_verdicts, _verdicts),
        _results("other new cases", [result for result in difference.appeared if result.verdict not in BAD]),
        _results("cases that are gone", difference.vanished),
    ]
    return [each for each in lists if each.entries]


def _changes(title: str, changes: Sequence[Change], phrase: Callable[[Change], str]) -> _List:
    return _List(
        title, tuple((c.case.id, phrase(c), _message(c.after) if phrase is _verdicts else "") for c in changes)
    )


def _results(title: str, results: Sequence[Result]) -> _List:
    return _List(title, tuple((result.case.id, result.verdict, _message(result)) for result in results))


def _message(result: Result) -> str:
    return result.message if result.verdict in BAD else ""


def _verdicts(change: Change) -> str:
    return f"{change.before.verdict} → {change.after.verdict}"


def _routes(change: Change) -> str:
    return f"{change.before.route} → {change.after.route}"


def _errors(change: Change) -> str:
    return f"{tally.ulp_text(change.before.ulp)} → {tally.ulp_text(change.after.ulp)} ULP"
