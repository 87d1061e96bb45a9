"""Compare two runs: regressions, fixes, and new cases. ``candelabra conformance diff BEFORE AFTER`` prints it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from candelabra_conformance import model
from candelabra_conformance.model import ROUTES, Case, Result, Run, Subject
from candelabra_conformance.report import tally
from candelabra_conformance.report.json_form import ReportError, read_json

_RANK: Final = {
    model.PASSED: 3,
    model.UNEXPECTED: 2,
    model.SKIPPED: 1,
    model.UNSUPPORTED: 1,
    model.EXPECTED: 1,
    model.BLOCKED: 0,
    model.FAILED: 0,
    model.CRASHED: 0,
    model.TIMED_OUT: 0,
}
"""The rank of each verdict. A lower rank than before is a regression, also from passed to expected failure (the list
hides it) or to skipped (it is no longer verified); a higher rank is a fix, also from expected failure to unexpected
pass (the list is outdated). A case that was blocked and now fails had the lowest rank before and after."""
FACTOR: Final = 2.0
"""Errors are listed if they grow or shrink by at least this factor."""
_FLOOR: Final = 0.5
"""In ULP. A correctly rounded result has errors up to this size; smaller ones are not compared."""


@dataclass(frozen=True)
class Change:
    """One case in both runs."""

    before: Result
    after: Result

    @property
    def case(self) -> Case:
        return self.after.case


@dataclass(frozen=True)
class Difference:
    """The difference of two runs. Every tuple is sorted by case."""

    before: Run
    after: Run
    regressions: tuple[Change, ...]
    fixes: tuple[Change, ...]
    other_verdicts: tuple[Change, ...]
    """Changes to another verdict of equal rank, such as from skipped to unsupported."""
    worse_routes: tuple[Change, ...]
    """Changes from native towards fallback and unsupported, whatever the verdict."""
    better_routes: tuple[Change, ...]
    larger_errors: tuple[Change, ...]
    smaller_errors: tuple[Change, ...]
    compared: int
    """The number of cases in both runs."""
    appeared: tuple[Result, ...]
    vanished: tuple[Result, ...]

    @property
    def regressed(self) -> bool:
        """Return whether a case got worse or the level fell. A new case that fails is no regression."""
        fell = self.after.level < self.before.level and not (self.after.selected or self.before.selected)
        return bool(self.regressions) or fell

    @property
    def other_facts(self) -> dict[str, tuple[str, str]]:
        """Return the facts that differ between the two subjects: the text of each by name."""
        names = [field.name for field in fields(Subject) if field.name != "facts"]
        found = {name: (getattr(self.before.subject, name), getattr(self.after.subject, name)) for name in names}
        before, after = self.before.subject.facts, self.after.subject.facts
        found |= {name: (before.get(name, ""), after.get(name, "")) for name in sorted({*before, *after})}
        return {name: texts for name, texts in found.items() if texts[0] != texts[1]}


def compare(before: Run, after: Run) -> Difference:
    """Compare `before` with `after`, case by case. If a case has several results, the worst one is used."""
    old, new = _by_case(before), _by_case(after)
    both = [Change(old[case], new[case]) for case in sorted(old.keys() & new.keys())]
    worth = [_RANK[change.after.verdict] - _RANK[change.before.verdict] for change in both]
    routes = [_route_step(change) for change in both]
    return Difference(
        before,
        after,
        regressions=tuple(change for change, gain in zip(both, worth) if gain < 0),
        fixes=tuple(change for change, gain in zip(both, worth) if gain > 0),
        other_verdicts=tuple(c for c, gain in zip(both, worth) if gain == 0 and c.before.verdict != c.after.verdict),
        worse_routes=tuple(change for change, step in zip(both, routes) if step > 0),
        better_routes=tuple(change for change, step in zip(both, routes) if step < 0),
        larger_errors=tuple(change for change in both if _larger(change.before.ulp, change.after.ulp)),
        smaller_errors=tuple(change for change in both if _larger(change.after.ulp, change.before.ulp)),
        compared=len(both),
        appeared=tuple(new[case] for case in sorted(new.keys() - old.keys())),
        vanished=tuple(old[case] for case in sorted(old.keys() - new.keys())),
    )


def _by_case(run: Run) -> dict[Case, Result]:
    found: dict[Case, Result] = {}
    for result in run.results:
        known = found.get(result.case)
        if known is None or tally.worst((result.verdict, known.verdict)) != known.verdict:
            found[result.case] = result
    return found


def _route_step(change: Change) -> int:
    """Return how many routes the case moved away from the device's own kernel, or 0 if it did not run in both runs."""
    if change.before.route not in ROUTES or change.after.route not in ROUTES:
        return 0
    return ROUTES.index(change.after.route) - ROUTES.index(change.before.route)


def _larger(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return False
    return tally.size(after) > FACTOR * max(tally.size(before), _FLOOR)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``candelabra conformance diff``. Return 0 without a regression, 1 with one, 2 if nothing was compared."""
    from candelabra_conformance.report import diff_text  # that module imports this one

    parser = argparse.ArgumentParser(
        prog="candelabra conformance diff",
        description="Compare two JSON reports. Exit status: 0 nothing got worse, 1 a regression, 2 nothing compared.",
    )
    parser.add_argument("before", help="JSON report of the run to compare with")
    parser.add_argument("after", help="JSON report of the newer run")
    parser.add_argument("--markdown", action="store_true", help="print Markdown, for a comment or a job's summary")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="show N entries of each list (default 20)")
    asked = parser.parse_args(argv)
    try:
        found = compare(read_json(asked.before), read_json(asked.after))
    except (ReportError, OSError) as error:
        sys.stderr.write(f"candelabra conformance diff: {error}\n")
        return 2
    form = diff_text.markdown if asked.markdown else diff_text.text
    encoding = sys.stdout.encoding or "utf-8"  # the encoding of an older Windows console has no arrow
    sys.stdout.write(form(found, asked.limit).encode(encoding, "backslashreplace").decode(encoding))
    if not found.regressed and not found.compared:
        sys.stderr.write("candelabra conformance diff: the two runs have no case in common: nothing was compared\n")
        return 2
    return int(found.regressed)
