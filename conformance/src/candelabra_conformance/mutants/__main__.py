"""``python -m candelabra_conformance.mutants [NAME …]``: run the suite on broken backends and report which it
catches."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from candelabra_conformance.mutants import matrix, reporting
from candelabra_conformance.mutants.catalogue import load
from candelabra_conformance.mutants.hunting import KILLED, SURVIVED, SYSTEMATIC, MutantOutcome, combined


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    mirror = argparse.ArgumentParser("python -m candelabra_conformance.mutants", description=__doc__)
    mirror.add_argument("names", nargs="*", metavar="NAME", help="mutants or families, with wildcards; all without one")
    mirror.add_argument(
        "--systematic",
        nargs="*",
        metavar="OPERATOR",
        help="the mutants computed from the kernel table too, of all operators; or, without NAME, of these only",
    )
    mirror.add_argument("--thorough", action="store_true", help="ask of every property whether it catches a mutant")
    mirror.add_argument("--quick", action="store_true", help="run only the own cases of --quick --level 2")
    mirror.add_argument("--list", action="store_true", help="only list the mutants and what is wrong with them")
    mirror.add_argument("--jobs", type=int, default=2, help="processes at once (2)")
    mirror.add_argument("--report", type=Path, metavar="DIRECTORY", help="write mutants.md and mutants.json there")
    return mirror


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command. Return 0 if each mutant of the catalogue was caught by a case that names its fault, 1
    otherwise."""
    options = parser().parse_args(argv)
    console = Console(stderr=False, soft_wrap=True)
    try:
        catalogued = options.names or not options.systematic
        names = matrix.chosen(options.names) if catalogued else []
        wanted = options.systematic if options.systematic is not None else None
        operators = [] if wanted is None else matrix.operators_with_kernels(wanted or ("*",))
    except ValueError as error:
        console.print(f"error: {error}", markup=False, highlight=False)
        return 2
    if options.list:
        for name in names:
            console.print(f"{name:45} {load()[name].fault}", markup=False, highlight=False)
        return 0
    findings = combined(_hunted(matrix.tasks(names, operators, options.thorough, options.quick), options.jobs, console))
    _print_outcome(findings, console)
    if options.report is not None:
        for path in reporting.write(findings, options.report, options.thorough):
            console.print(f"written: {path}", markup=False, highlight=False)
    return int(any(f.verdict != KILLED for f in findings if f.family != SYSTEMATIC))


def _hunted(todo: dict[str, matrix.Task], jobs: int, console: Console) -> list[MutantOutcome]:
    findings: list[MutantOutcome] = []
    columns = (
        TextColumn("mutants"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[last]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("mutants", total=len(todo), last="")
        for name, found in matrix.run(todo, jobs):
            findings += found
            progress.update(bar, advance=1, last=name)
            for finding in found:
                if finding.verdict != KILLED and not finding.of_family:
                    progress.console.print(_line(finding), markup=False, highlight=False)
    return findings


def _line(finding: MutantOutcome) -> str:
    if finding.verdict == SURVIVED:
        unseen = "" if finding.differed else " (it never gave other bits)"
        return f"SURVIVED {finding.mutant}: {finding.fault}{unseen}"
    return f"elsewhere {finding.mutant}: caught by {finding.caught_by}, which does not name the fault"


def _print_outcome(findings: list[MutantOutcome], console: Console) -> None:
    for family, words in ((False, "of the catalogue"), (True, "computed")):
        of = [f for f in findings if (f.family == SYSTEMATIC) is family]
        if of:
            killed = sum(f.verdict == KILLED for f in of)
            survived = sum(f.verdict == SURVIVED for f in of)
            text = f"{len(of)} mutants {words}: {killed} killed, {len(of) - killed - survived} by another case, "
            text += f"{survived} survived; {reporting.shares(of)}"
            console.print(text, markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
