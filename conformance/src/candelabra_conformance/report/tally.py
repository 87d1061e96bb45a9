"""Aggregate results for the reports: counts, worst verdicts and largest errors, sorted in the same way everywhere."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from candelabra_conformance import model
from candelabra_conformance.causes import CauseGroup, grouped, roots
from candelabra_conformance.model import (
    BAD,
    BLOCKED,
    HOLDS_BACK,
    LEVELS,
    ROUTES,
    VERDICTS,
    NextKernel,
    Result,
    Run,
)

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
"""Verdicts by their priority in one cell of a table. Passed comes before skipped."""
_SEVERAL: Final = 3
"""The least number of cases from which :func:`flushed_text` concludes something about the device."""
_SEVERITY: Final = {verdict: rank for rank, verdict in enumerate(WORST_FIRST)}
_KINDS: Final = {"bool": 0, "int": 1, "uint": 2, "float": 3, "bfloat": 3, "complex": 4}


def worst(verdicts: Iterable[str]) -> str:
    """Return the verdict that a table shows for several, or an empty string for none."""
    return min(verdicts, key=_SEVERITY.__getitem__, default="")


def counts(results: Iterable[Result]) -> dict[str, int]:
    """Return the number of results of each verdict, in the order of ``VERDICTS``, without verdicts that have none."""
    found = Counter(result.verdict for result in results)
    return {verdict: found[verdict] for verdict in VERDICTS if found[verdict]}


def counts_by(results: Iterable[Result], key: Callable[[Result], str]) -> dict[str, dict[str, int]]:
    """Return the counts of each group of results with the same `key`, sorted by key."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return {name: counts(groups[name]) for name in sorted(groups)}


def counts_by_level(run: Run) -> dict[int, dict[str, int]]:
    """Return the counts of each level, including levels without a case."""
    return {level: counts(r for r in run.results if r.case.level == level) for level in LEVELS}


def routes(run: Run) -> dict[str, tuple[int, int]]:
    """Return the number of cases and of operators that each route serves. An operator may have several, by dtype."""
    cases: Counter[str] = Counter()
    operators: dict[str, set[str]] = {}
    for result in run.results:
        if result.route:
            cases[result.route] += 1
            operators.setdefault(result.route, set()).add(result.case.operator)
    known = [*ROUTES, *sorted(set(cases) - set(ROUTES))]
    return {route: (cases[route], len(operators[route])) for route in known if cases[route]}


def failures(run: Run) -> list[Result]:
    """Return the results that make the run fail, the lowest level first."""
    return sorted((r for r in run.results if r.verdict in BAD), key=lambda r: (r.case.level, r.case))


def without_samples(run: Run) -> list[str]:
    """Return the public callables without samples."""
    skipped = (r for r in run.results if r.case.property == model.SAMPLES and r.verdict == model.SKIPPED)
    return sorted(r.case.operator for r in skipped if model.NO_SAMPLES in r.message)


def blockers(run: Run) -> list[tuple[str, int]]:
    """Return the ids or operators that block cases, each with the number of cases, the largest number first."""
    found = Counter(r.blocked_by or "unknown" for r in run.results if r.verdict == model.BLOCKED)
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


def size(ulp: float) -> float:
    """Return an error as a number for sorting: NaN is larger than any number."""
    return math.inf if math.isnan(ulp) else ulp


def worst_ulps(run: Run) -> list[Result]:
    """Return the result with the largest error of each operator and dtype, the largest first."""
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
    """Return a sort key for names of dtypes: by kind, then by width, with float16 before bfloat16.

    Names of an unknown kind are last.
    """
    match = re.fullmatch(r"([a-z]+)(\d*)", name)
    if match is None or match[1] not in _KINDS:
        return len(_KINDS), 0, 0, name
    return _KINDS[match[1]], int(match[2] or 0), len(name), name


def operator_order(name: str) -> tuple[bool, str]:
    """Return a sort key for names of operators: the device itself is first, then by name."""
    return name != model.DEVICE, name


def standing(run: Run) -> str:
    """Return the verdict of a run on the device: ``level 2 (training)``, or that a required level is not reached.

    A run of selected cases says nothing about levels.
    """
    if run.selected:
        bad = len(run.held_back_by)
        if bad:
            return f"{bad:,} of {many(len(run.results), 'selected case')} not passed"
        return "all selected cases pass" if run.conforms else "not all selected cases were run"
    reached = f"level {level_text(run.level)}"
    return reached if run.level >= run.required else f"{reached}, level {run.required} is required"


def obstacles(run: Run) -> list[str]:
    """Return what keeps the device from the required level, in one line per operator, verdict and message."""
    groups = grouped(run.results, HOLDS_BACK - {BLOCKED})
    found = [obstacle(group) for group in groups if group.first.case.level <= run.required]
    known = roots(run.results)
    lost = Counter(r.blocked_by for r in run.held_back_by if r.verdict == BLOCKED and r.case.id not in known)
    found += [f"blocked by {name or 'an unknown cause'}: {many(count, 'case')}" for name, count in lost.most_common()]
    left = sum(count for level, count in run.remaining.items() if level <= run.required)
    return [*found, f"not run for lack of time: {many(left, 'case')}"] if left else found


def obstacle(group: CauseGroup) -> str:
    """Return a group of failures in one line, with the number of cases that it blocks and the first message."""
    first = group.first
    words = f"{first.verdict} {group_title(group)}"
    message = first.message.partition("\n")[0]
    return f"{words}: {message}" if message else words


def group_title(group: CauseGroup) -> str:
    """Return operator, number of cases, properties and dtypes of a group of failures, and how many cases it blocks."""
    words = f"{group.first.case.operator}: {many(len(group.results), 'case')} of {', '.join(group.properties)}"
    words += f" in {', '.join(sorted(group.dtypes, key=dtype_order))}" if group.dtypes else ""
    return words + (f", blocks {many(group.blocks, 'case')}" if group.blocks else "")


def kernel_text(kernel: NextKernel) -> str:
    """Return how a kernel to write or to repair is named: ``exp (broken in float16)``, ``exp (missing)``."""
    dtypes = f" in {', '.join(sorted(kernel.dtypes, key=dtype_order))}" if kernel.dtypes else ""
    return f"{kernel.operator} ({kernel.state}{dtypes})"


def gain_text(run: Run, kernel: NextKernel) -> str:
    """Return what a kernel to write gains: ``unlocks 3``, or how many operators that work would run on the device."""
    held_back = {result.case.operator for result in run.results if result.verdict in HOLDS_BACK}
    if held_back.intersection(kernel.unlocks) or not kernel.unlocks:
        return f"unlocks {len(kernel.unlocks)}"
    return f"{many(len(kernel.unlocks), 'operator')} would run on the device"


def flushed_text(run: Run) -> str:
    """Return a hint if the wrong elements of several cases are those of a device that flushes subnormal numbers."""
    found = [result for result in run.results if result.verdict in BAD and model.FLUSHED in result.message]
    if len(found) < _SEVERAL:
        return ""
    return (
        f"{many(len(found), 'case')} would pass if numbers below the smallest normal one were 0: if the device takes "
        "and returns zeros for subnormal numbers, declare subnormals=False in its Capabilities"
    )


def subject_text(run: Run) -> str:
    """Return the device's description and the versions of backend, core and suite."""
    s = run.subject
    backend = f"{s.backend} {s.backend_version}".strip()
    backend += f", contributed kernels: {s.contributions}" if s.contributions else ""
    return (
        f"{s.description} — {backend} on candelabra {s.core}, suite {s.suite}, held against {s.reference}; "
        f"Python {s.python}, {s.platform}"
    )


def level_text(level: int) -> str:
    """Return the text of a level: ``2 (training)``, or ``none`` if not even the first level is reached."""
    return f"{level} ({LEVELS[level].split(':')[0]})" if level in LEVELS else "none"


def remaining_text(run: Run) -> str:
    """Return the number of cases that did not run for lack of time, ``1,200 cases remain, of level 3``, or ""."""
    levels = ", ".join(str(level) for level, count in run.remaining.items() if count)
    verb = "remains" if sum(run.remaining.values()) == 1 else "remain"
    left = f"{many(sum(run.remaining.values()), 'case')} {verb}, of level {levels}" if levels else ""
    return f"{left}; when the time was up, {' and '.join(run.stopped)} ran and did not end" if run.stopped else left


def many(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 case``, ``1,234 cases``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def ulp_text(ulp: float | None) -> str:
    """Return an error in units in the last place as short text: ``0.5``, ``3``, ``1.2e+06``, ``nan``; "" for none."""
    return "" if ulp is None else f"{ulp:.3g}"


def seconds_text(seconds: float) -> str:
    """Return a duration as text: ``0.4 s``, ``12 s``, ``3 min 20 s``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
