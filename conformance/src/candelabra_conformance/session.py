"""The state of a pytest session for one device under test: cases, expected failures, and failures so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from candelabra.errors import BackendError, DeviceUnavailable

from candelabra_conformance.causes import next_kernels
from candelabra_conformance.context import Context
from candelabra_conformance.model import BAD, Case, Result, Run
from candelabra_conformance.records import UnknownNameError
from candelabra_conformance.running.blocking import blocked_by_memory, settled
from candelabra_conformance.running.expected import ExpectedFailure, applied, of_backend, read
from candelabra_conformance.running.run import Options, forbidding, planned_cases, subject
from candelabra_conformance.running.setup import prepared
from candelabra_conformance.suite import run_case


@dataclass
class Session:
    """The state in one process. ``unavailable``: why the device does not exist; ``error``: why it cannot be tested."""

    device: str
    context: Context | None = None
    cases: list[Case] = field(default_factory=list)
    options: Options = field(default_factory=Options)
    expected: list[ExpectedFailure] = field(default_factory=list)
    forbid_fallback: bool = False
    unavailable: str = ""
    error: str = ""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=time.perf_counter)
    failed: list[Result] = field(default_factory=list)

    @classmethod
    def of(cls, config: pytest.Config, device: str) -> Session:
        """Open the device and plan the cases. A test reports an error; the collection never fails."""
        made = cls(device)
        made.forbid_fallback = config.getoption("candelabra_forbid_fallback")
        try:
            made.device = prepared(made.device)
            made.context = Context(made.device, config.getoption("candelabra_contributions"))
        except DeviceUnavailable as reason:
            made.unavailable = str(reason)
            return made
        except BackendError as error:
            made.error = str(error)
            return made
        made.options = chosen = Options(
            level=config.getoption("candelabra_level"),
            required=config.getoption("candelabra_require_level"),
            quick=config.getoption("candelabra_quick"),
            operators=tuple(config.getoption("candelabra_operator")) or None,
            patterns=tuple(config.getoption("candelabra_case")),
            forbid_fallback=made.forbid_fallback,
            huge=config.getoption("candelabra_huge"),
            contributions=config.getoption("candelabra_contributions"),
        )
        try:
            made.cases = planned_cases(made.context, chosen)
        except UnknownNameError as error:
            made.error = str(error)
            return made
        path = config.getoption("candelabra_expected_failures") or of_backend(made.context.device.type)
        made.expected = read(Path(path)) if path is not None else []
        return made

    def check(self) -> None:
        """Skip the test if the device does not exist, and fail it if the device cannot be tested."""
        if self.unavailable:
            pytest.skip(self.unavailable)
        if self.error:
            pytest.fail(self.error, pytrace=False)

    def entry(self, case: Case) -> ExpectedFailure | None:
        """Return the active expected failure of a case, or None."""
        today = self.started.date()
        living = (e for e in self.expected if e.expires is None or e.expires > today)
        return next((e for e in living if e.about(case.id)), None)

    def run(self, case: Case) -> Result:
        """Return the result of a case. It is blocked if an earlier failure in this process explains it."""
        assert self.context is not None
        blocked = blocked_by_memory(self.failed, case)
        if blocked is not None:
            return blocked
        with forbidding(self.forbid_fallback):
            result = run_case(self.context, case, forbid_fallback=self.forbid_fallback)
        result = settled([*self.failed, result])[-1]
        if result.verdict in BAD:
            self.failed.append(result)
        return result


def written(run: Run, paths: dict[str, Path]) -> None:
    """Write the reports of a run."""
    from candelabra_conformance.cli import FORMS

    for form, path in paths.items():
        path.write_text(FORMS[form][1](run), encoding="utf-8")


def gathered(session: Session, rows: list[tuple[str, dict[str, Any]]]) -> Run | None:
    """Return the run of a session, from the results that its tests and those of workers sent with the device's name.

    Return None if the device could not be opened.
    """
    if session.context is None:
        return None
    results = [
        Result(**{**row, "case": Case(**row["case"]), **_tuples(row)})
        for device, row in rows
        if device == session.device
    ]
    results, stale = applied(
        sorted(results, key=lambda r: (r.case.level != 0, r.case)), session.expected, session.started.date()
    )
    results = settled(results)
    return Run(
        subject(session.context),
        tuple(results),
        session.started.isoformat(timespec="seconds"),
        time.perf_counter() - session.clock,
        options=session.options.changed(),
        next_kernels=next_kernels(results),
        stale=stale if session.options.complete else (),
    )


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(row[name]) for name in ("uses", "missing", "declined")}
