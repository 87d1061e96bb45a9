"""Mark cases as blocked by the failure that explains them, so that one cause is one failure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from candelabra_conformance.model import BAD, BLOCKED, DEVICE, UNSUPPORTED, Case, Result

CAUSES: Final = ("value", "result", "aliasing", "inputs")
"""The properties of an operator whose failure breaks those that use it; derivatives affect only derivatives."""


def blocked_by_memory(failed: Iterable[Result], case: Case) -> Result | None:
    """Return the result of a case that need not run: the device's memory failed, in all dtypes or in the case's own."""
    causes = (r for r in failed if r.case.level == 0 and r.verdict in BAD and r.case.dtype in ("", case.dtype))
    cause = next(causes, None)
    if cause is None or case.level == 0:
        return None
    needing = f"all of {case.dtype}" if cause.case.dtype else "everything"
    words = f"{cause.case.id} does not hold, and {needing} needs memory"
    return Result(case, BLOCKED, message=words, blocked_by=cause.case.id)


def settled(results: Sequence[Result]) -> list[Result]:
    """Return the results, with failures marked as blocked by the operator that explains them.

    A failing operator that calls another failing one is explained by that one. Of two that call each other the one
    that uses fewer is the cause.
    """
    broken = _broken(results)
    return [_blocked(result, broken) for result in results]


def _broken(results: Sequence[Result]) -> dict[str, list[Result]]:
    found: dict[str, list[Result]] = {}
    for result in results:
        if result.verdict in BAD | {UNSUPPORTED} and result.case.operator != DEVICE:
            found.setdefault(result.case.operator, []).append(result)
    return found


def _blocked(result: Result, broken: dict[str, list[Result]]) -> Result:
    if result.verdict not in BAD | {UNSUPPORTED} or not result.uses:
        return result
    for used in result.uses:
        cause = _cause(result, broken.get(used, ()))
        if cause is not None:
            return replace(result, verdict=BLOCKED, blocked_by=cause.case.id, reproducer="")
    return result


def _cause(result: Result, candidates: Iterable[Result]) -> Result | None:
    """Return the failure of a used operator that explains this one, in its dtype, unless this one explains it."""
    for found in candidates:
        explains = found.case.property in CAUSES or (_derivative(found.case) and _derivative(result.case))
        alike = found.case.dtype == result.case.dtype or not result.case.dtype
        back = result.case.operator in found.uses
        if explains and alike and (not back or len(found.uses) < len(result.uses)):
            return found
    return None


def _derivative(case: Case) -> bool:
    return "gradient" in case.property
