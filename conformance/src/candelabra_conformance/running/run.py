"""A complete run: plan the cases, check memory, run the other cases in workers, and evaluate the results."""

from __future__ import annotations

import contextlib
import math
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import candelabra
from candelabra import fallback
from candelabra.library import plugins

from candelabra_conformance.causes import next_kernels
from candelabra_conformance.context import OFF, Context
from candelabra_conformance.model import BLOCKED, Case, Result, Run, Subject
from candelabra_conformance.report.tally import many
from candelabra_conformance.running import expected, main_program
from candelabra_conformance.running.blocking import blocked_by_memory, settled
from candelabra_conformance.running.quick import left_out, quick
from candelabra_conformance.running.setup import Setup, prepared
from candelabra_conformance.running.workers import WorkerArguments, run_in_workers
from candelabra_conformance.suite import plan, run_case


@dataclass(frozen=True)
class Options:
    """The options of a run.

    ``level``: the highest level. ``required``: the level that the device is held to, by default ``level``. ``quick``:
    every operator, in the cases of :mod:`candelabra_conformance.running.quick`. ``operators`` and ``patterns``
    restrict. ``jobs``: processes at once; 1 runs in this one unless ``isolate``. ``timeout``: seconds for a case, in
    processes. ``expected``: a file of expected failures in place of the backend's own. ``huge``: beyond 2**31 bytes,
    too. ``seconds``: no case begins later than this after the start, and the result lists the remaining cases.
    ``contributions``: ``"on"`` or ``"off"``, as :class:`~candelabra_conformance.context.Context` describes.
    """

    level: int = 3
    required: int | None = None
    quick: bool = False
    operators: tuple[str, ...] | None = None
    patterns: tuple[str, ...] = ()
    forbid_fallback: bool = False
    jobs: int = 1
    isolate: bool = False
    timeout: float | None = None
    expected: Path | None = None
    huge: bool = False
    seconds: float | None = None
    contributions: str | None = None

    def changed(self) -> dict[str, Any]:
        """Return the options that differ from the defaults, for the report."""
        plain = Options()
        return {
            name: str(value) if isinstance(value, Path) else value
            for name, value in vars(self).items()
            if value != getattr(plain, name)
        }

    @property
    def complete(self) -> bool:
        """Whether every case up to the level is planned, so that a pattern without a match is stale."""
        return not (self.patterns or self.operators or self.quick)


Finished = Callable[[Result], None]
Planned = Callable[[Sequence[Case]], None]


class ResumeError(ValueError):
    """An earlier run that cannot be resumed."""


def run(
    device: str,
    options: Options | None = None,
    *,
    setup: Setup | None = None,
    earlier: Sequence[Run] = (),
    planned: Planned = lambda cases: None,
    finished: Finished = lambda result: None,
) -> Run:
    """Test a device. ``planned`` is called with the cases, ``finished`` with each preliminary result.

    ``setup`` registers a backend without an entry point; it runs in each process and must be importable there. With
    several ``jobs`` and a script, each worker also executes the script up to this call, so a class and a backend that
    the script defines before are known there.
    ``earlier``: runs of the same device and code, whose results are used; only the other cases are run.
    Raises ``BackendError`` or a subclass if the device cannot be opened, and :class:`ResumeError` if an earlier run has
    another device or other versions.
    """
    replayed = main_program.reached()
    if replayed is not None:
        return replayed
    chosen = options or Options()
    started, clock = datetime.now(UTC), time.perf_counter()
    until = math.inf if chosen.seconds is None else time.monotonic() + chosen.seconds
    name = prepared(device, setup)
    context = Context(name, chosen.contributions)
    cases = planned_cases(context, chosen)
    about = subject(context)
    known = _known(earlier, about, cases)
    left = [case for case in cases if case not in known]
    planned(left)
    entries = _expected(chosen, context)
    work = WorkerArguments(device, setup, chosen.forbid_fallback, chosen.contributions)
    stopped: list[Case] = []
    results = list(known.values()) + _results(context, left, chosen, work, finished, until, stopped.append)
    results.sort(key=lambda r: (r.case.level != 0, r.case))
    ran = {result.case for result in results}
    results, stale = expected.applied(results, entries, started.date())
    results = settled(results)
    remaining = Counter(case.level for case in cases if case not in ran)
    done = Run(
        about,
        tuple(results),
        started.isoformat(timespec="seconds"),
        time.perf_counter() - clock,
        options=chosen.changed(),
        next_kernels=next_kernels(results),
        stale=stale if chosen.complete and not remaining else (),
        remaining=dict(sorted(remaining.items())),
        stopped=tuple(case.id for case in sorted(stopped)),
    )
    return main_program.remember(done)


def planned_cases(context: Context, chosen: Options) -> list[Case]:
    """Return the cases of a run. Raises ``UnknownNameError`` for an unknown operator."""
    kernels = context.instance.kernels
    cases = plan(
        context,
        level=chosen.level,
        operators=chosen.operators,
        patterns=chosen.patterns,
        huge=chosen.huge,
        without=lambda tested: left_out(tested, kernels) if chosen.quick else (),
    )
    return quick(cases, kernels) if chosen.quick else cases


def _known(earlier: Sequence[Run], about: Subject, cases: Sequence[Case]) -> dict[Case, Result]:
    """Return the results of earlier runs for these cases. Blocked cases run again: their cause may have been fixed."""
    wanted = set(cases)
    known: dict[Case, Result] = {}
    for run in earlier:
        if run.subject != about:
            changed = [name for name in vars(about) if getattr(run.subject, name) != getattr(about, name)]
            raise ResumeError(
                f"the run of {run.started} cannot be gone on with: its {', '.join(changed)} is not that of this run"
            )
        known |= {r.case: r for r in run.results if r.case in wanted and r.verdict != BLOCKED}
    return known


def _results(
    context: Context,
    cases: list[Case],
    chosen: Options,
    work: WorkerArguments,
    finished: Finished,
    until: float,
    stopped: Callable[[Case], None],
) -> list[Result]:
    memory = [c for c in cases if c.level == 0]
    found = _executed(context, memory, chosen, work, finished, until, stopped)
    outcomes = {case: blocked_by_memory(found, case) for case in cases if case.level != 0}
    blocked = [result for result in outcomes.values() if result is not None]
    for result in blocked:
        finished(result)
    rest = [case for case, result in outcomes.items() if result is None]
    return found + blocked + _executed(context, rest, chosen, work, finished, until, stopped)


def _executed(
    context: Context,
    cases: list[Case],
    chosen: Options,
    work: WorkerArguments,
    finished: Finished,
    until: float,
    stopped: Callable[[Case], None],
) -> list[Result]:
    if not cases:
        return []
    if chosen.jobs > 1 or chosen.isolate:
        return run_in_workers(cases, work, chosen.jobs, chosen.timeout, finished, until, stopped)
    results = []
    with forbidding(chosen.forbid_fallback):
        for case in cases:
            if time.monotonic() >= until:
                break
            results.append(run_case(context, case, forbid_fallback=chosen.forbid_fallback))
            finished(results[-1])
    return results


def forbidding(forbid: bool) -> contextlib.AbstractContextManager[None]:
    """Set the fallback policy of a run."""
    return fallback("error") if forbid else contextlib.nullcontext()


def _expected(chosen: Options, context: Context) -> list[expected.ExpectedFailure]:
    path = chosen.expected or expected.of_backend(context.device.type)
    return expected.read(path) if path is not None else []


def subject(context: Context) -> Subject:
    """Return the description of the tested device and the versions."""
    instance = context.instance
    info = instance.backend.devices()[instance.index]
    plugin = plugins.plugins().get(context.device.type)
    brought_by = plugin.distribution if plugin is not None else type(instance.backend).__module__
    if brought_by == "__main__":
        brought_by = Path(getattr(sys.modules["__main__"], "__file__", None) or "an interactive session").name
    return Subject(
        device=str(context.device),
        description=info.name,
        facts=info.texts,
        backend=brought_by,
        backend_version=_version(brought_by),
        contributions=contributed(context),
        reference=str(context.reference.device),
        core=candelabra.__version__,
        suite=_version("candelabra-conformance"),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
    )


def contributed(context: Context) -> str:
    """Return the distributions whose contributed kernels serve the device, with versions and numbers of kernels."""
    found = plugins.contributing(context.device.type)
    if not found or context.contributions == OFF:
        return "switched off" if found else ""
    return ", ".join(
        f"{each.distribution} {_version(each.distribution)}".strip() + f" ({many(len(each.kernels), 'kernel')})"
        for each in found
    )


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def cores() -> int:
    """Return the number of processes for this machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
