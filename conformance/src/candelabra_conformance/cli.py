"""``candelabra conformance``: run the suite on a device, write reports, or compare two of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from candelabra.errors import BackendError
from rich.console import Console

from candelabra_conformance import report
from candelabra_conformance.model import LEVELS, Run
from candelabra_conformance.records import UnknownNameError
from candelabra_conformance.report import ReportError, read_json
from candelabra_conformance.running import Options, ResumeError, run
from candelabra_conformance.running.expected import ExpectedFailuresError
from candelabra_conformance.running.run import cores
from candelabra_conformance.showing import shown

FORMS: Final[dict[str, tuple[str, Callable[[Run], str]]]] = {
    "json": ("everything, for `diff`", report.to_json),
    "junit": ("for CI servers", report.to_junit),
    "markdown": ("a summary for CI", report.to_markdown),
    "html": ("one page to look at", report.to_html),
    "badge": ("the level as SVG", report.to_badge),
}
"""The reports: a description of each, and the function that writes its text."""
UNFINISHED: Final = 3
"""The exit status of a run without failures that had no time for some cases."""


def main(argv: Sequence[str]) -> int:
    """Run the suite. Return 0 for success, 1 for failures, 2 for wrong usage, 3 if cases remain for lack of time."""
    if argv and argv[0] == "diff":
        from candelabra_conformance.report import diff

        return diff.main(list(argv[1:]))
    arguments = _parser().parse_args(list(argv))
    console = Console(stderr=True)
    try:
        earlier = [read_json(path) for path in arguments.resume]
        with shown(console, arguments.device) as (planned, finished):
            done = run(arguments.device, _options(arguments), earlier=earlier, planned=planned, finished=finished)
    except (BackendError, ExpectedFailuresError, ReportError, ResumeError, UnknownNameError, OSError) as error:
        print(f"candelabra conformance: {error}", file=sys.stderr)
        return 2
    if not done.results and not done.remaining:
        print("candelabra conformance: no case matches", file=sys.stderr)
        return 2
    write_reports(done, arguments)
    report.print_summary(done, Console())
    return 1 if not done.green else UNFINISHED if done.remaining else 0


def write_reports(done: Run, arguments: argparse.Namespace) -> None:
    """Write each requested report into its file."""
    for form, (_, make) in FORMS.items():
        path: Path | None = getattr(arguments, form)
        if path is not None:
            path.write_text(make(done), encoding="utf-8")


def _options(arguments: argparse.Namespace) -> Options:
    return Options(
        level=arguments.level,
        quick=arguments.quick,
        operators=tuple(arguments.operator) or None,
        patterns=tuple(arguments.case),
        forbid_fallback=arguments.forbid_fallback,
        jobs=arguments.jobs,
        isolate=arguments.isolate,
        timeout=arguments.timeout,
        expected=arguments.expected_failures,
        huge=arguments.huge,
        seconds=None if arguments.minutes is None else arguments.minutes * 60,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="candelabra conformance",
        description="Test a device against the reference: every public name, dtype, layout and property.",
        epilog="`candelabra conformance diff A.json B.json` shows the changes between two runs.",
    )
    parser.add_argument("--device", required=True, help="the device, such as acme or acme:1")
    levels = "; ".join(f"{level} {meaning}" for level, meaning in LEVELS.items())
    parser.add_argument("--level", type=int, choices=sorted(LEVELS), default=3, help=f"up to this level: {levels}")
    parser.add_argument("--quick", action="store_true", help="every operator, pairs of axes for kernels")
    parser.add_argument(
        "--operator", action="append", default=[], metavar="NAME", help="an operator or public name; may be repeated"
    )
    parser.add_argument(
        "--case", action="append", default=[], metavar="PATTERN", help="only ids like 'softmax/value/*'"
    )
    parser.add_argument("--forbid-fallback", action="store_true", help="an operator that falls back fails")
    parser.add_argument("--jobs", type=int, default=cores(), help="parallel processes (default: the machine's cores)")
    parser.add_argument("--isolate", action="store_true", help="use processes even with --jobs 1: a crash is a verdict")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="stop a case after this time")
    parser.add_argument("--minutes", type=float, help="begin no case later; the reports list the rest (status 3)")
    words = "take over the results of this JSON report, and run only what it lacks; may be repeated"
    parser.add_argument("--resume", type=Path, action="append", default=[], metavar="FILE", help=words)
    parser.add_argument("--expected-failures", type=Path, metavar="TOML", help="replaces the backend's own list")
    parser.add_argument("--huge", action="store_true", help="also on more than 2**31 bytes of memory")
    for form, (what, _) in FORMS.items():
        parser.add_argument(f"--{form}", type=Path, metavar="FILE", help=f"write a report: {what}")
    return parser
