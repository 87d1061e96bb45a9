"""Compare candelabra with PyTorch, operator by operator, with the samples in PyTorch's own wheel.

``python tools/oracle.py [NAME...]`` (with a Python that has both, such as that of ``make oracle``) runs every OpInfo of
``torch.testing._internal`` outside ``nn.functional`` through both and compares values, dtypes, shapes, gradients,
in-place and ``out=`` forms, aliases and the classes of errors. An operator passes if there is no difference.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import sys
from pathlib import Path
from typing import Any

from oracle_checks import Limits, Verdict, full_name, judge
from oracle_journal import Journal
from oracle_peer import record_modules
from oracle_report import markdown, summary
from oracle_values import DTYPES
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


def arguments() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these: add, 'linalg.*', norm.nuc (a variant)")
    parser.add_argument("--nn", action="store_true", help="nn.functional too")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES, metavar="DTYPE", help="only these")
    parser.add_argument("--samples", type=int, default=300, help="at most so many per operator and dtype (300)")
    parser.add_argument("--seconds", type=float, default=120.0, help="at most so much CPU time per operator (120)")
    parser.add_argument("--differences", type=int, default=8, help="at most so many reported per operator (8)")
    parser.add_argument("--reference", action="store_true", help="PyTorch's larger sets of samples: extremes, layouts")
    parser.add_argument("--summary", action="store_true", help="only the totals")
    parser.add_argument("--journal", type=Path, metavar="FILE", help="write each verdict there as it comes, and go on")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write them there for people, as Markdown")
    return parser.parse_args()


def selected(names: list[str], nn: bool) -> list[Any]:
    """Return the OpInfos of these names (patterns), by default all outside nn.functional."""
    from torch.testing._internal.common_methods_invocations import op_db

    if not names:
        return [op for op in op_db if nn or not op.name.startswith("nn.functional.")]
    found = [op for op in op_db if any(fnmatch.fnmatch(n, p) for p in names for n in (op.name, full_name(op)))]
    aliased = [op for op in op_db if any(alias.name in names for alias in op.aliases) and op not in found]
    if not found + aliased:
        sys.exit(f"oracle: PyTorch has no samples of {' '.join(names)}")
    return found + aliased


def verdicts(operators: list[Any], limits: Limits, journal: Journal, console: Console) -> list[Verdict]:
    """Judge one operator after the other, except those in the journal, and print the progress."""
    columns = TextColumn("{task.description:32}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(operators))
        for op in operators:
            progress.update(task, description=full_name(op))
            if full_name(op) not in journal.verdicts:
                journal.record(full_name(op), dataclasses.asdict(judge(op, limits)))
            progress.advance(task)
    return [Verdict(**journal.verdicts[full_name(op)]) for op in operators]


def main() -> int:
    """Run, print and write the report. Return 1 if anything differs."""
    options = arguments()
    record_modules()
    limits = Limits(tuple(options.dtypes), options.samples, options.seconds, options.differences, options.reference)
    journal = Journal(options.journal, dataclasses.asdict(limits))
    made = verdicts(selected(options.names, options.nn), limits, journal, Console(stderr=True))
    if options.report:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(markdown(made, limits))
    if not options.summary:
        for verdict in made:
            print(f"{verdict.name}: {verdict.status} ({verdict.samples} samples, {verdict.seconds:.1f} s)")
            print("".join(f"    {difference}\n" for difference in verdict.differences), end="")
    print(summary(made))
    return int(any(v.status in ("wrong", "missing") for v in made))


if __name__ == "__main__":
    sys.exit(main())
