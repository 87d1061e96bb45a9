"""The suite as pytest tests: one for each case of each device under test."""

from __future__ import annotations

import pytest

from candelabra_conformance.model import BAD, BLOCKED, PASSED, SKIPPED, UNSUPPORTED, Case
from candelabra_conformance.plugin import sessions_of
from candelabra_conformance.running.expected import ExpectedFailure
from candelabra_conformance.session import Session


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Generate a test for each case, or one that is skipped if there is no device."""
    sessions = sessions_of(metafunc.config)
    several = len(sessions) > 1
    tests = []
    for name, session in sessions.items():
        for case in session.cases:
            test_id = f"{name}: {case.id}" if several else case.id
            tests.append(pytest.param(session, case, id=test_id, marks=_marks(session.entry(case))))
        if not session.cases:
            tests.append(pytest.param(session, None, id=name))
    metafunc.parametrize(("session", "case"), tests or [pytest.param(None, None, id="no-device")])


def _marks(entry: ExpectedFailure | None) -> list[pytest.MarkDecorator]:
    if entry is None:
        return []
    return [pytest.mark.xfail(reason=f"{entry.reason} {entry.link}".strip(), strict=not entry.flaky)]


def test_conforms(session: Session | None, case: Case | None, request: pytest.FixtureRequest) -> None:
    """A device conforms to the reference in every case."""
    if session is None:
        pytest.skip("no device under test: name one with --candelabra-device")
    session.check()
    assert case is not None, "no case matches"
    result = session.run(case)
    request.node.candelabra_tested = (session.device, result)
    if result.verdict == SKIPPED:
        pytest.skip(result.message)
    if result.verdict == BLOCKED:
        pytest.skip(f"blocked by {result.blocked_by}")
    if result.verdict == UNSUPPORTED:
        pytest.skip(f"unsupported: {result.message}")
    assert result.verdict not in BAD, result.message
    assert result.verdict == PASSED
