"""The data model of the suite: a case, its result, and a run of many cases."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

DEVICE: Final = "device"
"""The operator's name in cases about the device itself, such as ``device/roundtrip/float32``."""

SAMPLES: Final = "samples"
"""The property that an operator has samples. It is checked first, so that no case passes without samples."""
NO_SAMPLES: Final = "has no samples"
"""The reason of the skipped case of a public callable without samples."""

FLUSHED: Final = "every wrong element is right if subnormal numbers are 0"
"""The part of a message which says that the device may flush subnormal numbers to zero."""

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
"""The verdicts that make a run fail. A blocked case does not; the case that blocks it does."""
HOLDS_BACK: Final = BAD | {BLOCKED, UNSUPPORTED}
"""The verdicts with which a device does not reach the level of a case."""
ROUTES: Final = ("native", "composite", "fallback", "unsupported")
"""The ways to serve an operator: the device's kernel (or strides), the operator's body, the reference device, none."""
LEVELS: Final[dict[int, str]] = {
    0: "memory: allocate, copy, item, compare",
    1: "inference",
    2: "training",
    3: "all dtypes and properties",
}


@dataclass(frozen=True, order=True)
class Case:
    """One requirement: an operator, a property, and the axes of the check. An empty string means no such axis."""

    operator: str
    property: str
    dtype: str = ""
    layout: str = ""
    level: int = field(default=3, compare=False)

    @builtins.property
    def id(self) -> str:
        """The id, which reads as a requirement: ``softmax/value/float16/transposed``."""
        return "/".join(part for part in (self.operator, self.property, self.dtype, self.layout) if part)


@dataclass(frozen=True)
class Result:
    """The result of a case."""

    case: Case
    verdict: str
    route: str = ""
    message: str = ""
    """The error of the check that failed, or the reason of a skipped, blocked or expected case."""
    reproducer: str = ""
    """A stand-alone program that shows the failure."""
    ulp: float | None = None
    """The largest measured error, in units in the last place of the result's dtype."""
    seconds: float = 0.0
    blocked_by: str = ""
    """The id of the case, or the name of the operator, that has to pass first."""
    uses: tuple[str, ...] = ()
    """For a failure, the operators that were called before it."""
    missing: tuple[str, ...] = ()
    """The operators for which the device had no kernel: they fell back, or were not served."""
    declined: tuple[str, ...] = ()
    """The kernels that declined a call for the first time in this process: operator, dtype and the kernel's reason."""


@dataclass(frozen=True)
class Subject:
    """The tested device, the machine, and the versions."""

    device: str
    description: str
    facts: Mapping[str, str]
    backend: str
    """The distribution or the module of the backend."""
    backend_version: str
    reference: str
    core: str
    suite: str
    python: str
    platform: str
    contributions: str = ""
    """The distributions that contribute kernels to the device, or that they are switched off."""


@dataclass(frozen=True)
class NextKernel:
    """A kernel to write or to repair next."""

    operator: str
    unlocks: tuple[str, ...]
    """The operators that work once it does."""
    dtypes: tuple[str, ...] = ()
    """The dtypes in which it is missing or broken."""
    broken: bool = False
    """Whether the device has such a kernel, and cases of it fail."""
    declines: bool = False
    """Whether the device has such a kernel, which declined the calls."""

    @property
    def state(self) -> str:
        """What is wrong with the kernel, in a word."""
        return "broken" if self.broken else "declines" if self.declines else "missing"


@dataclass(frozen=True)
class Run:
    """A complete run, as the reports show it."""

    subject: Subject
    results: tuple[Result, ...]
    started: str
    """ISO 8601, UTC."""
    seconds: float
    options: Mapping[str, Any] = field(default_factory=dict)
    next_kernels: tuple[NextKernel, ...] = ()
    """The kernels to write or to repair next, the most useful first."""
    stale: tuple[str, ...] = ()
    """The patterns of expected failures that match no case, or have expired."""
    remaining: Mapping[int, int] = field(default_factory=dict)
    """Level → the number of its cases that were not run for lack of time."""
    stopped: tuple[str, ...] = ()
    """The ids of the remaining cases that had begun and did not end: a slow case, or one that hangs."""

    @property
    def level(self) -> int:
        """The highest level whose cases were all run and none failed, was blocked or unsupported; -1 if none.

        In a run of selected cases it says nothing about the device.
        """
        reached = -1
        for level in sorted(LEVELS):
            at = [r for r in self.results if r.case.level == level]
            if not at or self.remaining.get(level) or any(r.verdict in HOLDS_BACK for r in at):
                break
            reached = level
        return reached

    @property
    def required(self) -> int:
        """The level that the device is held to: the option ``required``, by default the highest level of the run."""
        asked = self.options.get("required", self.options.get("level"))
        return asked if asked in LEVELS else max(LEVELS)

    @property
    def selected(self) -> bool:
        """Whether only selected operators or cases were run, which decides no level."""
        return bool(self.options.get("operators") or self.options.get("patterns"))

    @property
    def held_back_by(self) -> list[Result]:
        """The results that keep the device from the required level."""
        return [r for r in self.results if r.case.level <= self.required and r.verdict in HOLDS_BACK]

    @property
    def unfinished(self) -> bool:
        """Whether cases of the required level remain."""
        return any(count for level, count in self.remaining.items() if level <= self.required)

    @property
    def conforms(self) -> bool:
        """Whether the device reaches the required level, or in a run of selected cases, passes all of that level."""
        return not self.held_back_by and not self.unfinished and (self.selected or self.level >= self.required)

    @property
    def green(self) -> bool:
        return not any(r.verdict in BAD for r in self.results)
