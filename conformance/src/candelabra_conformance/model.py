"""What passes between the parts of the suite: a case, its result, and a run of many."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

DEVICE: Final = "device"
"""Stands where an operator's name does in the cases that are about the device itself: ``device/roundtrip/float32``."""

SAMPLES: Final = "samples"
"""The property of having something to be tried on. It comes first: nothing passes for want of a sample."""
NO_SAMPLES: Final = "has no samples"
"""What the skipped case of a public callable says that the suite has nothing to try on."""

PASSED, FAILED, SKIPPED, BLOCKED, UNSUPPORTED = "passed", "failed", "skipped", "blocked", "unsupported"
EXPECTED, UNEXPECTED, CRASHED, TIMED_OUT = "expected failure", "unexpected pass", "crashed", "timed out"
VERDICTS: Final[dict[str, str]] = {
    PASSED: "every check held",
    FAILED: "a check did not hold",
    SKIPPED: "nothing to check here, for the reason given",
    BLOCKED: "not run: something that it needs does not work",
    UNSUPPORTED: "refused with the typed error, as a device may that does not claim it",
    EXPECTED: "failed as the backend's own list says",
    UNEXPECTED: "on the backend's list of expected failures, but it passed",
    CRASHED: "the process that ran it died",
    TIMED_OUT: "the process that ran it was stopped after the time limit",
}
BAD: Final = frozenset({FAILED, UNEXPECTED, CRASHED, TIMED_OUT})
"""Verdicts that make a run red. A blocked case is not one: what blocks it is."""
ROUTES: Final = ("native", "composite", "fallback", "unsupported")
"""How a device serves an operator: its own kernel (or strides), the operator's body, the reference device, nothing."""
LEVELS: Final[dict[int, str]] = {
    0: "memory: allocate, copy, item, compare",
    1: "inference",
    2: "training",
    3: "all dtypes and properties",
}


@dataclass(frozen=True, order=True)
class Case:
    """One thing to hold: an operator, a property of it, and on what it is tried. Empty strings: not about that axis."""

    operator: str
    property: str
    dtype: str = ""
    layout: str = ""
    level: int = field(default=3, compare=False)

    @builtins.property
    def id(self) -> str:
        """Reads as a requirement: ``softmax/value/float16/transposed``."""
        return "/".join(part for part in (self.operator, self.property, self.dtype, self.layout) if part)


@dataclass(frozen=True)
class Result:
    """What became of a case."""

    case: Case
    verdict: str
    route: str = ""
    message: str = ""
    """Why, in the words of the check that failed; of a skipped, blocked or expected one the reason."""
    reproducer: str = ""
    """A stand-alone program that shows the failure."""
    ulp: float | None = None
    """The largest error that was measured, in units in the last place of the result's dtype."""
    seconds: float = 0.0
    blocked_by: str = ""
    """The id of the case, or the name of the operator, that has to work first."""
    uses: tuple[str, ...] = ()
    """Of a failure: the operators that were called on the way to it."""
    missing: tuple[str, ...] = ()
    """The operators for which the device had no kernel: they fell back, or nobody served them."""


@dataclass(frozen=True)
class Subject:
    """Who was tested, on what, by what."""

    device: str
    description: str
    facts: Mapping[str, str]
    backend: str
    """The distribution, or the module, that brings the backend."""
    backend_version: str
    reference: str
    core: str
    suite: str
    python: str
    platform: str


@dataclass(frozen=True)
class Run:
    """A whole run, as the reports show it."""

    subject: Subject
    results: tuple[Result, ...]
    started: str
    """ISO 8601, UTC."""
    seconds: float
    options: Mapping[str, Any] = field(default_factory=dict)
    next_kernels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Which kernel to write next, and the operators that it unlocks; the most useful first."""
    stale: tuple[str, ...] = ()
    """Patterns of expected failures that match no case any more, or have expired."""
    remaining: Mapping[int, int] = field(default_factory=dict)
    """Level → how many of its cases the time was too short for."""

    @property
    def level(self) -> int:
        """The highest level of which every case was run and none is red, blocked or unsupported; -1: none."""
        reached = -1
        for level in sorted(LEVELS):
            at = [r for r in self.results if r.case.level == level]
            if not at or self.remaining.get(level) or any(r.verdict in BAD | {BLOCKED, UNSUPPORTED} for r in at):
                break
            reached = level
        return reached

    @property
    def green(self) -> bool:
        return not any(r.verdict in BAD for r in self.results)
