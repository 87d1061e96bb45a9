"""The pytest plugin: ``pytest --pyargs candelabra_conformance --candelabra-device acme:0``.

Every case of the suite is a separate test, so xdist distributes them, ``-k`` selects some and ``--lf`` repeats the last
failures. ``--candelabra-operator`` and ``--candelabra-case`` plan only some of them, which is faster. The option may be
repeated, for several devices in one process. Without it the plugin only adds its options and its fixture.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from candelabra_conformance.model import Result, Run
    from candelabra_conformance.session import Session

PROPERTY: Final = "candelabra-conformance"
"""The name of the property with which a worker of xdist sends a test's result to the process that reports."""
SESSIONS: Final = pytest.StashKey[dict[str, "Session"]]()
OBSTACLES: Final = pytest.StashKey[list["Run"]]()
"""The runs of devices that do not reach the required level."""
SHOWN: Final = 20
"""The number of obstacles that the terminal shows."""
FORMS: Final = ("json", "junit", "markdown", "html", "badge")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of ``candelabra conformance``, with a prefix."""
    group = parser.getgroup("candelabra", "conformance of a candelabra backend")
    group.addoption(
        "--candelabra-device", metavar="DEVICE", action="append", default=[],
        help="a device under test, such as acme or acme:1; may be repeated",
    )  # fmt: skip
    group.addoption("--candelabra-level", type=int, default=3, choices=range(4), help="cases up to this level")
    group.addoption(
        "--candelabra-require-level", type=int, choices=range(4),
        help="fail if a device does not reach this level, also for unsupported cases, which are skipped tests",
    )  # fmt: skip
    group.addoption(
        "--candelabra-quick",
        action="store_true",
        help="every operator, in a choice of its cases",
    )
    group.addoption(
        "--candelabra-operator", metavar="OP", action="append", default=[], help="only this one; may be repeated"
    )
    group.addoption(
        "--candelabra-case", metavar="PATTERN", action="append", default=[], help="only ids like 'softmax/value/*'"
    )
    group.addoption("--candelabra-forbid-fallback", action="store_true", help="an operator that falls back fails")
    group.addoption(
        "--candelabra-contributions", choices=("on", "off"),
        help="whether the kernels that other distributions contribute to the device serve (default: if there are any)",
    )  # fmt: skip
    group.addoption("--candelabra-huge", action="store_true", help="also on more than 2**31 bytes of memory")
    group.addoption("--candelabra-expected-failures", metavar="TOML", help="replaces the backend's own list")
    for form in FORMS:
        group.addoption(f"--candelabra-{form}", metavar="FILE", help=f"write the first device's report as {form}")


def sessions_of(config: pytest.Config) -> dict[str, Session]:
    """Return the session of each device under test in this process, by its name, created at the first use."""
    if SESSIONS not in config.stash:
        from candelabra_conformance.session import Session

        named = dict.fromkeys(config.getoption("candelabra_device"))
        config.stash[SESSIONS] = {name: Session.of(config, name) for name in named}
    return config.stash[SESSIONS]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the fixture ``candelabra_device`` once per device."""
    named = metafunc.config.getoption("candelabra_device")
    if "candelabra_device" in metafunc.fixturenames and len(named) > 1:
        metafunc.parametrize("candelabra_device", list(dict.fromkeys(named)), indirect=True, scope="session")


@pytest.fixture(scope="session")
def candelabra_device(request: pytest.FixtureRequest) -> str:
    """The name of the device under test. The test is skipped if none was named or the device does not exist."""
    named = request.config.getoption("candelabra_device")
    if not named:
        pytest.skip("no device under test: name one with --candelabra-device")
    session = sessions_of(request.config)[getattr(request, "param", named[0])]
    session.check()
    return session.device


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the message and the reproducer of a failed case instead of the suite's frames."""
    report = yield
    tested: tuple[str, Result] | None = getattr(item, "candelabra_tested", None)
    if tested is not None and call.when == "call":
        device, result = tested
        report.user_properties.append((PROPERTY, json.dumps((device, asdict(result)))))
        if report.failed:
            from candelabra_conformance.report.programs import on_a_screen

            program = f"\n\nReproducer:\n\n{on_a_screen(result)}" if result.reproducer else ""
            report.longrepr = result.message + program
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect the results, also those of xdist's workers."""
    for name, value in report.user_properties:
        if name == PROPERTY and report.when == "call":
            _gathered.append(value)


_gathered: Final[list[Any]] = []


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the requested reports, in the process that collects the results, and fail if the required level is not
    reached."""
    config = session.config
    wanted = {f: config.getoption(f"candelabra_{f}") for f in FORMS if config.getoption(f"candelabra_{f}")}
    required = config.getoption("candelabra_require_level") is not None
    if not _gathered or hasattr(config, "workerinput"):
        return
    rows, _gathered[:] = [json.loads(row) for row in _gathered], []
    if not wanted and not required:
        return
    from candelabra_conformance.session import gathered, written

    for place, tested in enumerate(sessions_of(config).values()):
        run = gathered(tested, rows)
        if run is None:
            continue
        if place == 0:
            written(run, {f: Path(p) for f, p in wanted.items()})
        if required and not run.conforms:
            config.stash.setdefault(OBSTACLES, []).append(run)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what keeps a device from the required level."""
    for run in config.stash.get(OBSTACLES, []):
        from candelabra_conformance.report import tally

        terminalreporter.section(f"{run.subject.device}: {tally.standing(run)}")
        for line in tally.obstacles(run)[:SHOWN]:
            terminalreporter.write_line(line)
