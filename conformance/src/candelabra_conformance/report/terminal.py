"""A run as text for the terminal: a summary of about one screen."""

from __future__ import annotations

from textwrap import indent
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from candelabra_conformance import model
from candelabra_conformance.model import LEVELS, VERDICTS, Result, Run
from candelabra_conformance.report import tally

STYLES: Final = {
    model.PASSED: "green",
    model.FAILED: "bold red",
    model.SKIPPED: "dim",
    model.BLOCKED: "magenta",
    model.UNSUPPORTED: "cyan",
    model.EXPECTED: "yellow",
    model.UNEXPECTED: "bold red",
    model.CRASHED: "bold white on red",
    model.TIMED_OUT: "bold white on red",
}
"""The style of each verdict on a terminal."""


def summary(run: Run, failures: int = 10, errors: int = 5) -> RenderableType:
    """Return the summary of `run` for ``rich``, with the first `failures` failures and the `errors` largest errors.

    Texts of the run are never interpreted as markup.
    """
    parts: list[RenderableType] = [_verdicts(run)]
    parts += _failures(run, failures)
    parts += _lines("blocked by", [f"{name}: {tally.many(count, 'case')}" for name, count in tally.blockers(run)[:5]])
    parts += _lines("kernels to write next", [_kernel(*entry) for entry in run.next_kernels[:5]])
    parts += _lines(
        "routes",
        [f"{name}: {tally.many(c, 'case')}, {tally.many(o, 'operator')}" for name, (c, o) in tally.routes(run).items()],
    )
    worst = [f"{tally.ulp_text(r.ulp)} ULP  {r.case.id}" for r in tally.worst_ulps(run)[:errors]]
    parts += _lines("largest errors", worst)
    parts += _lines("public callables without samples", _some(tally.without_samples(run)))
    parts += _lines("expected failures that match nothing any more, or have expired", list(run.stale))
    parts.append(_verdict(run))
    return Group(*parts)


def print_summary(run: Run, console: Console | None = None, failures: int = 10, errors: int = 5) -> None:
    """Print the summary of `run` on `console`, by default the terminal."""
    (console or Console()).print(summary(run, failures, errors), crop=False)


def _verdicts(run: Run) -> Table:
    shown = [verdict for verdict in VERDICTS if any(result.verdict == verdict for result in run.results)]
    grid = Table(box=None, pad_edge=False)
    grid.add_column("level")
    for verdict in shown:
        grid.add_column(Text(verdict), justify="right")
    for level, found in tally.counts_by_level(run).items():
        cells = [Text(str(found.get(verdict, "")), STYLES[verdict]) for verdict in shown]
        grid.add_row(Text(f"{level} {LEVELS[level]}"), *cells)
    return grid


def _failures(run: Run, limit: int) -> list[RenderableType]:
    red = tally.failures(run)
    parts: list[RenderableType] = []
    for result in red[:limit]:
        parts += [Text(), _title(result)]
        if result.message:
            parts.append(_indented(result.message))
        if result.reproducer:
            parts += [Text("  reproducer:", "dim"), _indented(result.reproducer)]
    if len(red) > limit:
        parts += [Text(), Text(f"… and {len(red) - limit} more failures", "bold")]
    return parts


def _title(result: Result) -> Text:
    facts = [result.route] if result.route else []
    facts += [f"{tally.ulp_text(result.ulp)} ULP"] if result.ulp is not None else []
    return Text.assemble(
        (result.verdict, STYLES[result.verdict]),
        " ",
        (result.case.id, "bold"),
        "  " + ", ".join(facts) if facts else "",
    )


def _indented(text: str) -> Text:
    """Return lines that are not wrapped, so that a program can be copied."""
    return Text(indent(text.rstrip(), "  "), no_wrap=True, overflow="ignore")


def _lines(title: str, lines: list[str]) -> list[RenderableType]:
    if not lines:
        return []
    return [Text(), Text(title, "bold"), *(_indented(line) for line in lines)]


def _some(names: list[str]) -> list[str]:
    """Return the first names on a line and the number of the others, or nothing if there are no names."""
    rest = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return [", ".join(names[:8]) + rest] if names else []


def _kernel(name: str, unlocked: tuple[str, ...]) -> str:
    return f"{name}: unlocks {len(unlocked)} ({', '.join(unlocked[:5])}{', …' if len(unlocked) > 5 else ''})"


def _verdict(run: Run) -> Text:
    found = ", ".join(f"{count} {verdict}" for verdict, count in tally.counts(run.results).items()) or "no case"
    style = "bold green" if run.green else "bold red"
    level, remaining = tally.level_text(run.level), tally.remaining_text(run)
    return Text.assemble(
        "\n",
        (f"{run.subject.device}: level {level}", style),
        f"  {found} in {tally.seconds_text(run.seconds)}{'; ' if remaining else ''}{remaining}",
    )
