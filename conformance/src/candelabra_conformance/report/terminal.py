"""A run as text for the terminal: a summary of about one screen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import indent
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from candelabra_conformance import model
from candelabra_conformance.causes import declined, grouped
from candelabra_conformance.model import LEVELS, VERDICTS, NextKernel, Result, Run
from candelabra_conformance.report import tally
from candelabra_conformance.report.programs import described, fits_on_a_screen, saved

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


def summary(run: Run, failures: int = 10, errors: int = 5, files: Mapping[str, Path] | None = None) -> RenderableType:
    """Return the summary of `run` for ``rich``, with the first `failures` groups of failures and the `errors` largest
    errors.

    ``files`` contains the files of reproducers by case id. Texts of the run are never interpreted as markup.
    """
    parts: list[RenderableType] = [_verdicts(run)]
    parts += _failures(run, failures, files or {})
    parts += _lines("kernels to write next", [_kernel(run, kernel) for kernel in run.next_kernels[:5]])
    parts += _lines(
        "routes",
        [f"{name}: {tally.many(c, 'case')}, {tally.many(o, 'operator')}" for name, (c, o) in tally.routes(run).items()],
    )
    every = "in the HTML report (--html), and in the JSON report for each case (--json)"
    calls = _first(declined(run.results), failures, every)
    parts += _lines("kernels that declined calls, with the first reason", calls)
    worst = [f"{tally.ulp_text(r.ulp)} ULP  {r.case.id}" for r in tally.worst_ulps(run)[:errors]]
    parts += _lines("largest errors", worst)
    parts += _lines("public callables without samples", _some(tally.without_samples(run)))
    parts += _lines("expected failures that match nothing any more, or have expired", list(run.stale))
    parts += _obstacles(run, failures)
    parts += _lines("a capability to check", list(filter(None, [tally.flushed_text(run)])))
    parts += [Text(), Text(tally.subject_text(run), "dim"), _verdict(run)]
    return Group(*parts)


def print_summary(
    run: Run, console: Console | None = None, failures: int = 10, errors: int = 5, folder: Path | None = None
) -> None:
    """Print the summary of `run` on `console`, by default the terminal.

    Reproducers that are longer than a screen are written into files of a folder for temporary files. With
    ``folder``, the reproducers of all groups of failures are written there.
    """
    files = saved(run, folder, failures)
    (console or Console()).print(summary(run, failures, errors, files), crop=False)


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


def _failures(run: Run, limit: int, files: Mapping[str, Path]) -> list[RenderableType]:
    groups = grouped(run.results)
    parts: list[RenderableType] = []
    for group in groups[:limit]:
        result = group.first
        parts += [Text(), _title(result)]
        if len(group.results) > 1 or group.blocks:
            parts.append(_indented(tally.group_title(group)))
        if result.message:
            parts.append(_indented(result.message))
        parts += _program(result, files)
    left = sum(len(group.results) for group in groups[limit:])
    if left:
        words = f"… and {tally.many(left, 'more failure')} of {tally.many(len(groups) - limit, 'other cause')}"
        parts += [Text(), Text(words, "bold")]
    return parts


def _program(result: Result, files: Mapping[str, Path]) -> list[RenderableType]:
    """Return a reproducer that fits on a screen, and where the file of another one is."""
    program, path = result.reproducer, files.get(result.case.id)
    if not program:
        return []
    if fits_on_a_screen(program):
        where = f" (also in {path})" if path is not None else ""
        return [Text(f"  reproducer{where}:", "dim"), _indented(program)]
    where = str(path) if path is not None else "the JSON and HTML reports"
    return [_indented(f"reproducer of {described(program)}: {where}")]


def _obstacles(run: Run, limit: int) -> list[RenderableType]:
    """Return what keeps the device from the required level, the most blocking first."""
    title = "what does not pass" if run.selected else f"why level {run.required} is not reached"
    return _lines(title, _first(tally.obstacles(run), limit))


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


def _first(lines: list[str], limit: int, every: str = "") -> list[str]:
    """Return the first lines, shortened, and the number of the others; ``every``: where all lines are."""
    rest = [f"… and {len(lines) - limit} more" + (f"; all are {every}" if every else "")] if len(lines) > limit else []
    return [*(line[:400] for line in lines[:limit]), *rest]


def _kernel(run: Run, kernel: NextKernel) -> str:
    named = ", ".join(kernel.unlocks[:5]) + (", …" if len(kernel.unlocks) > 5 else "")
    return f"{tally.kernel_text(kernel)}: {tally.gain_text(run, kernel)}" + (f" ({named})" if named else "")


def _verdict(run: Run) -> Text:
    found = ", ".join(f"{count} {verdict}" for verdict, count in tally.counts(run.results).items()) or "no case"
    style = "bold green" if run.conforms else "bold red"
    remaining = tally.remaining_text(run)
    return Text.assemble(
        (f"{run.subject.device}: {tally.standing(run)}", style),
        f"  {found} in {tally.seconds_text(run.seconds)}{'; ' if remaining else ''}{remaining}",
        no_wrap=True, overflow="ignore",
    )  # fmt: skip
