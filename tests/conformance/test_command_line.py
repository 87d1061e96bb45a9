"""``candelabra conformance``: exit statuses, reports, the comparison of two runs, and the pytest plugin."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from candelabra._cli.main import main
from candelabra.library import OPERATORS
from candelabra_conformance.cli import STATUSES
from candelabra_conformance.running.workers import WorkerStartError

SOFTMAX = ["--case", "softmax/value/float32/*", "--case", "device/copy/float32", "--jobs", "1"]


def test_a_green_run_writes_every_report_and_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each report is in the file that the command line names, and the summary says what was found."""
    files = {form: tmp_path / f"report.{form}" for form in ("json", "junit", "markdown", "html", "badge")}
    options = [part for form, path in files.items() for part in (f"--{form}", str(path))]
    assert main(["conformance", "--device", "fake", *SOFTMAX, *options]) == 0
    assert "passed" in capsys.readouterr().out
    report = json.loads(files["json"].read_text())
    assert report["schema"] == 1
    starts = {"junit": "<?xml", "markdown": "#", "html": "<!doctype html>", "badge": "<svg"}
    for form, start in starts.items():
        assert files[form].read_text().lower().startswith(start), form


def test_a_device_that_is_not_there_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints one sentence on the error stream and no traceback."""
    assert main(["conformance", "--device", "nobody"]) == 2
    error = capsys.readouterr().err
    assert "candelabra conformance: no backend is installed for device type 'nobody'" in error
    assert "Traceback" not in error


def test_no_matching_case_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    """A pattern without a match tests nothing, which is not a success."""
    run = ["conformance", "--device", "fake", "--jobs", "1"]
    assert main([*run, "--case", "sofmax/*"]) == 2
    assert "no case matches: there is no operator and no public name 'sofmax'; did you" in capsys.readouterr().err
    assert main([*run, "--case", "exp/valeu/*", "--level", "1"]) == 2
    assert "no case matches exp/valeu/* up to level 1\n" in capsys.readouterr().err


def test_an_unknown_operator_ends_with_2_and_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    """The message names similar operators, and there is no traceback."""
    assert main(["conformance", "--device", "fake", "--operator", "sofmax"]) == 2
    assert capsys.readouterr().err.strip() == (
        "candelabra conformance: there is no operator and no public name 'sofmax'; did you mean 'softmax' or 'fmax' or "
        "'log_softmax'?"
    )
    assert main(["conformance", "--device", "fake", "--operator", "zzz_q"]) == 2
    assert capsys.readouterr().err.strip().endswith("'zzz_q'")


def test_a_run_without_the_time_for_all_ends_with_3_and_is_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report counts the remaining cases; the next run takes over the existing results and completes them."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    run = ["conformance", "--device", "fake", *SOFTMAX]
    assert main([*run, "--minutes", "0", "--json", str(first)]) == 3
    assert re.search(r"not all selected cases were run .*; \d+ cases remain, of level 0, 1", capsys.readouterr().out)
    remaining = json.loads(first.read_text())["remaining"]
    assert main([*run, "--resume", str(first), "--json", str(second)]) == 0
    report = json.loads(second.read_text())
    assert report["remaining"] == {}
    assert len(report["results"]) == sum(remaining.values())


def test_what_is_no_report_cannot_be_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid file and a missing file give one sentence on the error stream and status 2."""
    (tmp_path / "a.json").write_text("{}")
    run = ["conformance", "--device", "fake", *SOFTMAX]
    assert main([*run, "--resume", str(tmp_path / "a.json")]) == 2
    assert "a.json: not a report" in capsys.readouterr().err
    assert main([*run, "--resume", str(tmp_path / "b.json")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_a_forbidden_fallback_is_a_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A case passes if the fallback is allowed and is refused otherwise; the comparison reports it with status 1."""
    run = ["conformance", "--device", "fake?-tanh", "--case", "tanh/value/float32/contiguous", "--jobs", "1"]
    allowed, forbidden = tmp_path / "a.json", tmp_path / "b.json"
    assert main([*run, "--json", str(allowed)]) == 0
    assert main([*run, "--forbid-fallback", "--json", str(forbidden)]) == 1
    assert "unsupported tanh: 1 case of value in float32: " in capsys.readouterr().out
    capsys.readouterr()
    assert main(["conformance", "diff", str(allowed), str(forbidden)]) == 1
    assert "tanh/value/float32/contiguous" in capsys.readouterr().out
    assert main(["conformance", "diff", str(allowed), str(allowed)]) == 0


@contextmanager
def few_operators(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the suite test a few operators only, as if there were no others."""
    few: list[Any] = [OPERATORS["tanh"], OPERATORS["exp"]]
    monkeypatch.setattr("candelabra_conformance.suite.everything_tested", lambda: few)
    yield
    monkeypatch.undo()


def test_a_level_that_is_not_reached_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unsupported cases are named and the status is 1, though no case has failed; a lower level may be required."""
    run = ["conformance", "--device", "fake?-tanh", "--level", "1", "--quick", "--jobs", "1", "--forbid-fallback"]
    with few_operators(monkeypatch):
        assert main([*run, "--json", str(tmp_path / "a.json")]) == 1
        said = capsys.readouterr().out
        assert "why level 1 is not reached\n  unsupported tanh: " in said
        assert "operator 'tanh' is not available on device 'fake:0'" in said
        assert "tanh (missing in " in said
        assert "fake:0: level 0 (memory), level 1 is required" in said
        assert main([*run, "--require-level", "0", "--json", str(tmp_path / "b.json")]) == 0
        assert "fake:0: level 0 (memory)  " in capsys.readouterr().out
    first, second = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json"))
    assert (first["level"], first["required"], first["conforms"]) == (0, 1, False)
    assert (second["level"], second["required"], second["conforms"], second["obstacles"]) == (0, 0, True, [])
    assert first["obstacles"][0].startswith("unsupported tanh: ")


@pytest.mark.parametrize(("quick", "setting", "seen"), [(True, None, "0"), (True, "1", "1"), (False, None, None)])
def test_a_quick_run_compiles_no_optional_kernels(
    quick: bool, setting: str | None, seen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment forbids it during a quick run, unless the user allows it; afterwards it is as before."""
    monkeypatch.delenv("CANDELABRA_COMPILE")
    if setting is not None:
        monkeypatch.setenv("CANDELABRA_COMPILE", setting)
    found = []

    def run(device: str, options: Any, **more: Any) -> Any:
        found.append(os.environ.get("CANDELABRA_COMPILE"))
        raise WorkerStartError("stopped")

    monkeypatch.setattr("candelabra_conformance.cli.run", run)
    assert main(["conformance", "--device", "cpu", *(["--quick"] if quick else [])]) == 2
    assert found == [seen]
    assert os.environ.get("CANDELABRA_COMPILE") == setting


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--level", "1", "--require-level", "2"], "--require-level 2 is above --level 1"),
        (["--require-level", "2", "--operator", "exp"], "cannot be combined with --operator and --case"),
        (["--require-level", "2", "--case", "exp/*"], "cannot be combined with --operator and --case"),
        (["--json", "/no/folder/a.json"], "--json: there is no folder '/no/folder'"),
    ],
)
def test_options_that_cannot_work_end_the_command_before_it_runs(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A level that no case decides cannot be required; the status is 2."""
    with pytest.raises(SystemExit) as ended:
        main(["conformance", "--device", "fake", *options])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_the_help_lists_the_exit_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    """Each status has its meaning, as in the guide for vendors."""
    with pytest.raises(SystemExit):
        main(["conformance", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    guide = " ".join((Path(__file__).parents[2] / "docs/adding-a-backend.md").read_text().split())
    for code, meaning in STATUSES.items():
        assert f"{code} {meaning}" in said
        assert f"| {code} | {meaning} |" in guide


def pytest_run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the suite's tests in a separate process that does not read this repository's settings."""
    program = [sys.executable, "-m", "pytest", "-q", "-rsf", "-p", "no:cacheprovider", "--pyargs"]
    return subprocess.run(
        [*program, "candelabra_conformance", *arguments], capture_output=True, text=True, check=False, cwd="/"
    )


def test_pytest_runs_a_test_for_each_case(tmp_path: Path) -> None:
    """Test ids are case ids, workers of xdist share the tests, and the controlling process writes the report."""
    report = tmp_path / "report.json"
    done = pytest_run(
        "--candelabra-device", "fake", "--candelabra-level", "1", "--candelabra-case", "softmax/value/float32/*",
        "-n", "1", "--candelabra-json", str(report),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(report.read_text())["results"]
    assert {tuple(row[:3]) for row in rows} == {("softmax", "value", "float32")}
    assert len(rows) > 5
    assert f"{len(rows)} passed" in done.stdout


@pytest.mark.thorough
def test_pytest_plans_every_case_by_default() -> None:
    """Without patterns all cases are planned, which takes a while, and ``-k`` chooses among their tests."""
    done = pytest_run("--candelabra-device", "fake", "-k", "softmax/value/float32 and not log_softmax")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed, \d{5,} deselected", done.stdout)


@pytest.mark.thorough
def test_pytest_plans_the_operators_that_are_named() -> None:
    """A selection without a case is a failure."""
    done = pytest_run(
        "--candelabra-device", "fake", "--candelabra-operator", "neg", "--candelabra-case", "neg/value/float32/*"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = pytest_run("--candelabra-device", "fake", "--candelabra-operator", "neg", "--candelabra-case", "add/*")
    assert done.returncode == 1
    assert "no case matches" in done.stdout
    done = pytest_run("--candelabra-device", "fake", "--candelabra-operator", "sofmax")
    assert done.returncode == 1
    assert "there is no operator and no public name 'sofmax'; did you mean" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.thorough
def test_pytest_holds_a_device_to_a_level(tmp_path: Path) -> None:
    """Unsupported cases are skipped tests; with a required level they fail the session, which says what is missing."""
    run = ["--candelabra-device", "fake?-tanh", "--candelabra-case", "tanh/value/float32/contiguous"]
    run += ["--candelabra-forbid-fallback"]
    assert pytest_run(*run).returncode == 0
    done = pytest_run(*run, "--candelabra-require-level", "1")
    assert done.returncode == 1
    assert "fake:0: 1 of 1 selected case not passed" in done.stdout
    assert "unsupported tanh: 1 case of value in float32: operator 'tanh' is not available" in done.stdout


def test_pytest_skips_without_a_device() -> None:
    """Collecting the package without naming a device is no error: one skipped test says what to do."""
    done = pytest_run()
    assert done.returncode == 0
    assert "no device under test: name one with --candelabra-device" in done.stdout


def test_pytest_tests_several_devices_in_one_process() -> None:
    """Each case is one test per device, with the device's name in its id.

    A device that this machine does not have is skipped with the backend's reason. For an unknown one, one test fails
    with the registry's message; there is no collection error.
    """
    devices = [part for name in ("fake:0", "fake:1", "fake:7", "nobody") for part in ("--candelabra-device", name)]
    done = pytest_run(
        *devices, "-vv", "--candelabra-case", "device/copy/float32", "--candelabra-case", "device/copy/int64"
    )
    assert done.returncode == 1
    assert "test_conforms[fake:0: device/copy/float32] PASSED" in done.stdout
    assert "test_conforms[fake:1: device/copy/int64] PASSED" in done.stdout
    assert "device 'fake:7' does not exist: backend 'fake' offers 2 device(s)" in done.stdout
    assert "no backend is installed for device type 'nobody'" in done.stdout
    assert "1 failed, 4 passed, 1 skipped" in done.stdout
