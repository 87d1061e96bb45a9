"""``candelabra conformance``: run the suite on a device, write reports, or compare two of them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from candelabra.errors import BackendError
from rich.console import Console

from candelabra_conformance import report
from candelabra_conformance.context import OFF, ON
from candelabra_conformance.model import DEVICE, LEVELS, Run
from candelabra_conformance.records import UnknownNameError, everything_named
from candelabra_conformance.report import ReportError, read_json
from candelabra_conformance.running import Options, ResumeError, run
from candelabra_conformance.running.expected import ExpectedFailuresError
from candelabra_conformance.running.run import cores
from candelabra_conformance.running.sources import changed_since
from candelabra_conformance.running.workers import WorkerStartError
from candelabra_conformance.showing import shown

FORMS: Final[dict[str, tuple[str, Callable[[Run], str]]]] = {
    "json": ("everything, for `diff`", report.to_json),
    "junit": ("for CI servers", report.to_junit),
    "markdown": ("a summary for CI", report.to_markdown),
    "html": ("one page to look at", report.to_html),
    "badge": ("the level as SVG", report.to_badge),
}
"""The reports: a description of each, and the function that writes its text."""
REFUSALS: Final = (
    BackendError, ExpectedFailuresError, ReportError, ResumeError, UnknownNameError, WorkerStartError, OSError,
)  # fmt: skip
"""The errors that end the command with a message."""
CONFORMS, DIFFERS, USAGE, UNFINISHED = 0, 1, 2, 3
STATUSES: Final = {
    CONFORMS: "the device reaches the required level, or passes all selected cases",
    DIFFERS: "it does not: cases failed, are unsupported or blocked",
    USAGE: "wrong usage, or the device cannot be opened",
    UNFINISHED: "cases of the required level remain for lack of time, and none has failed",
}
"""The exit statuses. A broken pipe is 141, as for every command of ``candelabra``."""
COMPILE: Final = "CANDELABRA_COMPILE"
"""The environment variable that forbids (0) or allows (1) compiling kernels in whose place others can serve."""


def main(argv: Sequence[str]) -> int:
    """Run the suite, and return the exit status. :data:`STATUSES` describes each."""
    if argv and argv[0] == "diff":
        from candelabra_conformance.report import diff

        return diff.main(list(argv[1:]))
    parser = _parser()
    arguments = parser.parse_args(list(argv))
    _checked(parser, arguments)
    console = Console(stderr=True)
    try:
        earlier = [read_json(path) for path in arguments.resume]
        _warn_of_changes(arguments.resume, earlier)
        with _compiling(arguments.quick), shown(console, arguments.device) as (planned, finished):
            done = run(arguments.device, _options(arguments), earlier=earlier, planned=planned, finished=finished)
    except REFUSALS as error:
        print(f"candelabra conformance: {error}", file=sys.stderr)
        return USAGE
    if not done.results and not done.remaining:
        print(f"candelabra conformance: no case matches{_unmatched(arguments)}", file=sys.stderr)
        return USAGE
    write_reports(done, arguments)
    report.print_summary(done, _Output(), folder=arguments.reproducers)
    return status(done)


def _warn_of_changes(files: Sequence[Path], earlier: Sequence[Run]) -> None:
    """Print a warning for each resumed report that is older than a module of the backend's package."""
    for file, report_of in zip(files, earlier, strict=True):
        changed = changed_since(report_of)
        if changed is not None:
            print(
                f"candelabra conformance: warning: {changed} was changed after the run of {file} began. Its results "
                "are taken over nevertheless, passed and failed ones: leave out --resume to test the changed package",
                file=sys.stderr,
            )


@contextmanager
def _compiling(quick: bool) -> Iterator[None]:
    """Forbid compiling at run time in a quick run, also in its workers, unless the user has set the variable.

    The suite's odd samples ask for thousands of kernels that no program needs: their compilation took three quarters
    of a quick run's time.
    """
    if not quick or COMPILE in os.environ:
        yield
        return
    os.environ[COMPILE] = "0"
    try:
        yield
    finally:
        os.environ.pop(COMPILE, None)


class _Output(Console):
    """The standard output, whose reader may close it: ``candelabra conformance … | head``."""

    def on_broken_pipe(self) -> None:
        """Raise the error, which the command ``candelabra`` turns into its exit status."""
        raise BrokenPipeError


def _unmatched(arguments: argparse.Namespace) -> str:
    """Return the reason why the patterns of ``--case`` match nothing, if it is an unknown name."""
    for pattern in arguments.case:
        name = pattern.partition("/")[0]
        if name == DEVICE or set(name) & set("*?["):
            continue
        try:
            everything_named(name)
        except UnknownNameError as error:
            return f": {error}"
    return f" {' or '.join(arguments.case)} up to level {arguments.level}" if arguments.case else ""


def status(done: Run) -> int:
    """Return the exit status for a run."""
    if done.held_back_by:
        return DIFFERS
    return CONFORMS if done.conforms else UNFINISHED if done.unfinished else DIFFERS


def _checked(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """End the program with a message for options that contradict each other, and for folders that do not exist."""
    for form in FORMS:
        path: Path | None = getattr(arguments, form)
        if path is not None and not path.parent.is_dir():
            parser.error(f"--{form}: there is no folder {str(path.parent)!r}")
    if arguments.require_level is None:
        return
    if arguments.require_level > arguments.level:
        parser.error(
            f"--require-level {arguments.require_level} is above --level {arguments.level}: nothing decides it"
        )
    if arguments.operator or arguments.case:
        parser.error("--require-level needs every case: it cannot be combined with --operator and --case")


def write_reports(done: Run, arguments: argparse.Namespace) -> None:
    """Write each requested report into its file."""
    for form, (_, make) in FORMS.items():
        path: Path | None = getattr(arguments, form)
        if path is not None:
            path.write_text(make(done), encoding="utf-8")


def _options(arguments: argparse.Namespace) -> Options:
    return Options(
        level=arguments.level,
        required=arguments.require_level,
        quick=arguments.quick,
        operators=tuple(arguments.operator) or None,
        patterns=tuple(arguments.case),
        forbid_fallback=arguments.forbid_fallback,
        jobs=arguments.jobs,
        isolate=arguments.isolate,
        timeout=arguments.timeout,
        expected=arguments.expected_failures,
        huge=arguments.huge,
        contributions=arguments.contributions,
        seconds=None if arguments.minutes is None else arguments.minutes * 60,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="candelabra conformance",
        description="Test a device against the reference: every public name, dtype, layout and property.",
        epilog="Exit status: "
        + "; ".join(f"{code} {meaning}" for code, meaning in STATUSES.items())
        + ". `candelabra conformance diff A.json B.json` shows the changes between two runs.",
    )
    parser.add_argument("--device", required=True, help="the device, such as acme or acme:1")
    levels = "; ".join(f"{level} {meaning}" for level, meaning in LEVELS.items())
    parser.add_argument("--level", type=int, choices=sorted(LEVELS), default=3, help=f"up to this level: {levels}")
    words = "the level that decides the exit status (default: that of --level), so that later levels may fail"
    parser.add_argument("--require-level", type=int, choices=sorted(LEVELS), metavar="LEVEL", help=words)
    parser.add_argument("--quick", action="store_true", help="every operator, in a choice of its cases")
    parser.add_argument(
        "--operator", action="append", default=[], metavar="NAME", help="an operator or public name; may be repeated"
    )
    parser.add_argument(
        "--case", action="append", default=[], metavar="PATTERN", help="only ids like 'softmax/value/*'"
    )
    parser.add_argument("--forbid-fallback", action="store_true", help="an operator that falls back fails")
    words = "whether the kernels that other distributions contribute to the device serve (default: if there are any)"
    parser.add_argument("--contributions", choices=(ON, OFF), help=words)
    parser.add_argument("--jobs", type=int, default=cores(), help="parallel processes (default: the machine's cores)")
    parser.add_argument("--isolate", action="store_true", help="use processes even with --jobs 1: a crash is a verdict")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="stop a case after this time")
    parser.add_argument("--minutes", type=float, help="begin no case later; the reports list the rest (status 3)")
    words = (
        "take over the results of this JSON report, passed and failed ones, and run only the cases that it lacks or "
        "that were blocked; for the same package, core and suite: a change of the package is only warned of; may be "
        "repeated"
    )
    parser.add_argument("--resume", type=Path, action="append", default=[], metavar="FILE", help=words)
    parser.add_argument("--expected-failures", type=Path, metavar="TOML", help="replaces the backend's own list")
    parser.add_argument("--huge", action="store_true", help="also on more than 2**31 bytes of memory")
    words = "write the reproducers into files; without it, long ones go to a folder for temporary files"
    parser.add_argument("--reproducers", type=Path, metavar="FOLDER", help=words)
    for form, (what, _) in FORMS.items():
        parser.add_argument(f"--{form}", type=Path, metavar="FILE", help=f"write a report: {what}")
    return parser
