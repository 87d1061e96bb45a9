"""What the reports say about many results at once: counts, worst verdicts, worst errors, in one order everywhere."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from candelabra_conformance import model
from candelabra_conformance.model import BAD, LEVELS, ROUTES, VERDICTS, Result, Run

WORST_FIRST: Final = (
    model.CRASHED,
    model.TIMED_OUT,
    model.FAILED,
    model.UNEXPECTED,
    model.BLOCKED,
    model.EXPECTED,
    model.UNSUPPORTED,
    model.PASSED,
    model.SKIPPED,
)
"""Verdicts by how much they matter in one cell of a table; what passed hides what there was nothing to check for."""
_SEVERITY: Final = {verdict: rank for rank, verdict in enumerate(WORST_FIRST)}
_KINDS: Final = {"bool": 0, "int": 1, "uint": 2, "float": 3, "bfloat": 3, "complex": 4}


def worst(verdicts: Iterable[str]) -> str:
    """The verdict that a table shows for several; the empty string for none."""
    return min(verdicts, key=_SEVERITY.__getitem__, default="")


def counts(results: Iterable[Result]) -> dict[str, int]:
    """How many results each verdict has, in the order of ``VERDICTS``; verdicts without any are left out."""
    found = Counter(result.verdict for result in results)
    return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}


def counts_by(results: Iterable[Result], key: Callable[[Result], str]) -> dict[str, dict[str, int]]:
    """The counts of every group of results that `key` gives one name, sorted by name."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return {name: counts(groups[name]) for name in sorted(groups)}


def counts_by_level(run: Run) -> dict[int, dict[str, int]]:
    """The counts of each level, also of those without a case."""
    return {level: counts(r for r in run.results if r.case.level == level) for level in LEVELS}


def routes(run: Run) -> dict[str, tuple[int, int]]:
    """How many cases, and how many operators, each route serves. An operator may take several, by dtype."""
    cases: Counter[str] = Counter()
    operators: dict[str, set[str]] = {}
    for result in run.results:
        if result.route:
            cases[result.route] += 1
            operators.setdefault(result.route, set()).add(result.case.operator)
    known = [*ROUTES, *sorted(set(cases) - set(ROUTES))]
    return {route: (cases[route], len(operators[route])) for route in known if cases[route]}


def failures(run: Run) -> list[Result]:
    """The results that make the run red, the most basic level first."""
    return sorted((r for r in run.results if r.verdict in BAD), key=lambda r: (r.case.level, r.case))


def without_samples(run: Run) -> list[str]:
    """The public callables that the suite has nothing to try on."""
    skipped = (r for r in run.results if r.case.property == model.SAMPLES and r.verdict == model.SKIPPED)
    return sorted(r.case.operator for r in skipped if model.NO_SAMPLES in r.message)


def blockers(run: Run) -> list[tuple[str, int]]:
    """What blocks cases, and how many it blocks; what blocks most first."""
    found = Counter(r.blocked_by or "unknown" for r in run.results if r.verdict == model.BLOCKED)
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


def size(ulp: float) -> float:
    """An error as a number that compares: not-a-number is worse than any number."""
    return math.inf if math.isnan(ulp) else ulp


def worst_ulps(run: Run) -> list[Result]:
    """The result with the largest error of each operator and dtype, the largest first."""
    found: dict[tuple[str, str], Result] = {}
    for result in sorted(run.results, key=lambda r: r.case):
        if result.ulp is None:
            continue
        key = (result.case.operator, result.case.dtype)
        if key not in found or _largest_first(result) < _largest_first(found[key]):
            found[key] = result
    return sorted(found.values(), key=lambda r: (*_largest_first(r), r.case))


def _largest_first(result: Result) -> tuple[float, bool]:
    ulp = result.ulp or 0.0
    return -size(ulp), not math.isnan(ulp)


def dtype_order(name: str) -> tuple[int, int, int, str]:
    """Sorts names of dtypes as people list them: by kind, then by width, float16 before bfloat16.

    Names of no known kind come last.
    """
    match = re.fullmatch(r"([a-z]+)(\d*)", name)
    if match is None or match[1] not in _KINDS:
        return len(_KINDS), 0, 0, name
    return _KINDS[match[1]], int(match[2] or 0), len(name), name


def operator_order(name: str) -> tuple[bool, str]:
    """Sorts names of operators: the device itself first, then by name."""
    return name != model.DEVICE, name


def level_text(level: int) -> str:
    """A level as a reader sees it: ``2 (training)``; ``none`` when not even the first is reached."""
    return f"{level} ({LEVELS[level].split(':')[0]})" if level in LEVELS else "none"


def remaining_text(run: Run) -> str:
    """What the time was too short for: ``1,200 cases remain, of level 3``. Nothing where nothing is."""
    levels = ", ".join(str(level) for level, count in run.remaining.items() if count)
    verb = "remains" if sum(run.remaining.values()) == 1 else "remain"
    return f"{many(sum(run.remaining.values()), 'case')} {verb}, of level {levels}" if levels else ""


def many(count: int, noun: str, plural: str = "") -> str:
    """A number with its noun: ``1 case``, ``1,234 cases``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def ulp_text(ulp: float | None) -> str:
    """An error in units in the last place, short: ``0.5``, ``3``, ``1.2e+06``, ``nan``; nothing for none."""
    return "" if ulp is None else f"{ulp:.3g}"


def seconds_text(seconds: float) -> str:
    """A duration as people say it: ``0.4 s``, ``12 s``, ``3 min 20 s``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
