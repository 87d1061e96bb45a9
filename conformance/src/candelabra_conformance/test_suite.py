"""The suite as tests: one for each case of the device under test."""

from __future__ import annotations

import pytest

from candelabra_conformance.model import BAD, BLOCKED, PASSED, SKIPPED, UNSUPPORTED, Case
from candelabra_conformance.plugin import session_of


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each case; where there is no device, one that says so."""
    if metafunc.config.getoption("candelabra_device") is None:
        metafunc.parametrize("case", [pytest.param(None, id="no-device")])
        return
    session = session_of(metafunc.config)
    cases = [pytest.param(case, id=case.id, marks=_marks(session.entry(case))) for case in session.cases] or [
        pytest.param(None, id=session.device)
    ]
    metafunc.parametrize("case", cases)


def _marks(entry: object) -> list[pytest.MarkDecorator]:
    from candelabra_conformance.running.expected import ExpectedFailure

    if not isinstance(entry, ExpectedFailure):
        return []
    return [pytest.mark.xfail(reason=f"{entry.reason} {entry.link}".strip(), strict=not entry.flaky)]


def test_conforms(case: Case | None, request: pytest.FixtureRequest) -> None:
    """The device does what the reference does."""
    request.getfixturevalue("candelabra_device")  # skips, or fails, where there is none
    assert case is not None, "no case matches"
    result = session_of(request.config).run(case)
    request.node.candelabra_result = result
    if result.verdict == SKIPPED:
        pytest.skip(result.message)
    if result.verdict == BLOCKED:
        pytest.skip(f"blocked by {result.blocked_by}")
    if result.verdict == UNSUPPORTED:
        pytest.skip(f"unsupported: {result.message}")
    assert result.verdict not in BAD, result.message
    assert result.verdict == PASSED
