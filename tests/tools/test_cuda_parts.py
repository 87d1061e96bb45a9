"""The parts of ``make cuda-check`` on the host: what each runs and reports, when it stops, and how it continues."""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import candelabra as cd
import pytest
from candelabra._plugins.registry import reference_device

ROOT = Path(__file__).resolve().parents[2]
HOST = str(reference_device())
SLEEPS = ["sh", "-c", "echo so far; sleep 600"]


@pytest.fixture
def cuda_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return the module with its own kernel cache."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path / "cache"))
    return importlib.import_module("cuda_parts")


@pytest.fixture
def arguments(cuda_parts: ModuleType, tmp_path: Path) -> Callable[..., Any]:
    """Return the arguments of the command line for the host, with some of them changed."""
    usual = {
        "device": HOST, "peer": sys.executable, "library": "candelabra", "size": "tiny", "jobs": 1, "quick": True,
        "epochs": 1, "state": tmp_path,
    }  # fmt: skip
    return lambda **changed: cuda_parts.CheckRun(**{**usual, **changed})


# -- commands ---------------------------------------------------------------------------------------------------------
def test_a_command_that_takes_too_long_is_stopped(cuda_parts: ModuleType, tmp_path: Path) -> None:
    """Its output is kept, and its child processes are terminated."""
    code, said = cuda_parts.output(SLEEPS, 1.0, tmp_path / "a.log")
    assert code == 124
    assert said == ["so far", "stopped after 1 s"]
    assert (tmp_path / "a.log").read_text() == "so far\n"


def test_a_command_has_the_repository_and_its_variables(cuda_parts: ModuleType, tmp_path: Path) -> None:
    """It has no input, can import modules in the root, and CuPy's kernel cache is next to ours."""
    program = "import os, sys, benchmarks; print(os.environ['A'], os.environ['CUPY_CACHE_DIR'], sys.stdin.read())"
    code, said = cuda_parts.output([sys.executable, "-c", program], 60.0, tmp_path / "a.log", {"A": "b"})
    assert (code, said) == (0, [f"b {tmp_path}/cache/cuda/cupy "])


def test_when_the_time_is_up_a_command_is_no_failure(cuda_parts: ModuleType, arguments: Callable[..., Any]) -> None:
    """It is distinguished from a command that exceeded its own limit."""
    with pytest.raises(cuda_parts.TimeUp, match="the time was up") as stopped:
        arguments(until=time.monotonic() + 1.0).output(SLEEPS, 500.0)
    assert stopped.value.output[0] == "so far"
    assert arguments(until=time.monotonic() + 500.0).output(SLEEPS, 1.0)[0] == 124


def test_what_can_stop_by_itself_gets_a_deadline(arguments: Callable[..., Any]) -> None:
    """Its limit is less than the remaining time, so that it is not terminated."""
    (word, minutes) = arguments(until=time.monotonic() + 330.0).stopping()
    assert word == "--minutes"
    assert 4.5 < float(minutes) <= 5.0
    assert arguments(until=time.monotonic() + 5.0).stopping() == ["--minutes", "0.000"]
    assert arguments(until=math.inf).stopping() == []


# -- parts ------------------------------------------------------------------------------------------------------------
def test_the_first_calls_are_held_against_the_reference(cuda_parts: ModuleType, arguments: Callable[..., Any]) -> None:
    """Each call, from a kernel to the libraries, is a line."""
    found = cuda_parts.first(arguments())
    assert (found["verdict"], found["said"], found["fatal"]) == ("passed", "9 calls are right", False)


def test_a_device_without_a_working_kernel_is_unusable(cuda_parts: ModuleType, arguments: Callable[..., Any]) -> None:
    """The report has the reason, and says that nothing else will work."""
    found = cuda_parts.first(arguments(device="nonsense"))
    assert (found["verdict"], found["fatal"]) == ("failed", True)
    assert "a kernel in C: wrong: " in found["said"]
    assert "nonsense" in found["said"]


def test_a_wrong_call_is_named(monkeypatch: pytest.MonkeyPatch, cuda_parts: ModuleType, capsys: Any) -> None:
    """The report has its result; other calls may still work."""
    tool = importlib.import_module("cuda_first")
    calls = {"right": lambda device: tool.matrix(device), "odd": lambda device: tool.matrix(device) + (device == "one")}
    monkeypatch.setattr(tool, "CALLS", calls)
    monkeypatch.setattr(tool, "matrix", lambda device: importlib.import_module("candelabra").ones(2))
    assert tool.main("one") == 1
    assert "odd: wrong: [2.0, 2.0] for [1.0, 1.0]" in capsys.readouterr().out


def test_a_level_is_judged_by_the_suite(
    cuda_parts: ModuleType, arguments: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The suite runs on the device, and the part's sentence has its counts."""
    monkeypatch.setattr(cuda_parts, "SHORT", ("trunc",))
    found = cuda_parts.conformance(1)(arguments())
    assert found["verdict"] == "passed"
    assert found["counts"]["passed"] > 10
    assert found["failures"] == []


@pytest.mark.thorough
def test_a_level_goes_on_with_what_is_known(
    cuda_parts: ModuleType, arguments: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without time nothing runs and all cases remain; the next run completes them, and a higher level reuses them."""
    monkeypatch.setattr(cuda_parts, "SHORT", ("trunc",))
    found = cuda_parts.conformance(1)(arguments(until=time.monotonic() + 25.0))
    assert found["verdict"] == "unfinished"
    assert " cases remain" in found["said"]
    whole = cuda_parts.conformance(1)(arguments())
    ran: list[tuple[str, ...]] = []
    runs = cuda_parts.CheckRun.runs

    def seen(self: Any, *words: str, **options: Any) -> Any:
        ran.append(words)
        return runs(self, *words, **options)

    monkeypatch.setattr(cuda_parts.CheckRun, "runs", seen)
    higher = cuda_parts.conformance(2)(arguments())
    assert whole["verdict"] == higher["verdict"] == "passed"
    assert higher["counts"]["passed"] > whole["counts"]["passed"]
    (words,) = ran
    assert [words[i + 1] for i, word in enumerate(words) if word == "--resume"] == [
        str(tmp_path / "conformance-1.json")
    ]


def test_a_part_that_runs_again_takes_nothing_over(arguments: Callable[..., Any], tmp_path: Path) -> None:
    """Only results of the same run are reused."""
    for name, when in (("b", 100), ("a", 200), ("c", 300)):
        (tmp_path / f"conformance-{name}.json").write_text("")
        os.utime(tmp_path / f"conformance-{name}.json", (when, when))
    names = lambda files: [file.stem[-1] for file in files]  # noqa: E731
    assert names(arguments(started=250.0).known("conformance-*.json")) == ["b", "a", "c"]
    assert names(arguments(started=250.0, again=True).known("conformance-*.json")) == ["c"]


def test_failures_of_the_suite_are_named(cuda_parts: ModuleType) -> None:
    """The report has a failed case's id and the first line of its message."""
    columns = ["operator", "property", "dtype", "layout", "verdict", "message", "uses"]
    rows = [["add", "value", "float32", "step", "failed", "is 1\nand 2"], ["sub", "value", "bool", "", "passed"]]
    content = {"columns": columns, "results": rows, "counts": {"failed": 1}, "seconds": 2.0, "level": -1}
    found = cuda_parts.judged(content, 1, ["the end"])
    assert (found["verdict"], found["said"]) == ("failed", "1 failed; 2 s")
    assert found["failures"] == ["add/value/float32/step is 1"]


def test_a_suite_that_cannot_run_is_a_failure(cuda_parts: ModuleType, arguments: Callable[..., Any]) -> None:
    """The error of a missing device is the suite's."""
    found = cuda_parts.conformance(1)(arguments(device="nonsense"))
    assert found["verdict"] == "failed"
    assert found["said"] == "the suite wrote no report (exit status 2)"
    assert "nonsense" in "\n".join(found["output"])


@pytest.mark.skipif(cd.cuda.is_available(), reason="there is a GPU, so they run")
def test_tests_that_are_all_skipped_show_nothing(cuda_parts: ModuleType, arguments: Callable[..., Any]) -> None:
    """Without a GPU all tests that require one are skipped."""
    found = cuda_parts.hardware(arguments())
    assert found["verdict"] == "not run"
    assert "skipped" in found["said"]


def test_the_demo_is_a_part(cuda_parts: ModuleType, arguments: Callable[..., Any]) -> None:
    """It learns on the device, and its sentence is its row of the table."""
    found = cuda_parts.demo(arguments())
    assert found["verdict"] == "passed"
    assert found["said"].startswith(HOST)


def test_a_peer_that_is_not_there_is_a_failure_that_says_what_to_install(
    cuda_parts: ModuleType, arguments: Callable[..., Any]
) -> None:
    """The other parts continue, so this one only reports what is missing."""
    found = cuda_parts.benchmarks(arguments(peer="no/such/python"))
    assert found["verdict"] == "failed"
    assert "no/such/python does not exist" in found["said"]
    assert "make .venv-peer/.peer" in found["said"]


def test_a_peer_that_does_not_start_in_time_is_no_failure(
    cuda_parts: ModuleType, arguments: Callable[..., Any]
) -> None:
    """It may only lack time, and is tried again."""
    with pytest.raises(cuda_parts.TimeUp) as stopped:
        cuda_parts.benchmarks(arguments(peer="no/such/python", until=time.monotonic() + 25.0))
    assert "no/such/python does not exist" in "\n".join(stopped.value.output)


def test_marks_go_on_with_what_was_measured(
    cuda_parts: ModuleType, arguments: Callable[..., Any], tmp_path: Path
) -> None:
    """The remaining marks stay; a missed mark is named at once."""
    found = cuda_parts.benchmarks(arguments(until=time.monotonic() + 25.0))
    assert found["verdict"] == "unfinished"
    assert found["said"].startswith("0 of 0 marks hold, against candelabra ")
    figures = json.loads((tmp_path / "benchmarks.json").read_text())
    names = figures["remaining"]
    rows = [{"name": name, "most": 2.0, "goal": None, "kept": False, "error": "slow"} for name in names[:-1]]
    (tmp_path / "benchmarks.json").write_text(json.dumps(figures | {"rows": rows}))
    found = cuda_parts.benchmarks(arguments())
    assert found["verdict"] == "failed"
    assert len(found["rows"]) == len(names)
    assert found["failures"][0] == f"{names[0]} does not hold"


def test_the_sanitizer_is_left_out_where_it_is_not_installed(
    cuda_parts: ModuleType, arguments: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is not a failure, and the report says what to install."""
    monkeypatch.setattr(cuda_parts, "sanitizer_path", lambda: None)
    assert cuda_parts.sanitizer(arguments()) == {
        "verdict": "not run", "said": "compute-sanitizer is not installed: it comes with NVIDIA's CUDA toolkit",
    }  # fmt: skip


@pytest.mark.parametrize(("code", "verdict"), [(0, "passed"), (9, "failed"), (3, "unfinished")])
def test_the_sanitizer_is_given_a_short_run(
    cuda_parts: ModuleType,
    arguments: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    code: int,
    verdict: str,
) -> None:
    """If it is installed, it runs the suite on few operators, and the sentence is its summary."""
    program = tmp_path / "compute-sanitizer"
    program.write_text(f'#!/bin/sh\necho "========= ERROR SUMMARY: some errors $*"\nexit {code}\n')
    program.chmod(0o755)
    monkeypatch.setattr(cuda_parts, "sanitizer_path", lambda: str(program))
    found = cuda_parts.sanitizer(arguments())
    assert found["verdict"] == verdict
    assert found["said"].startswith("ERROR SUMMARY: some errors --tool memcheck")
    assert f"conformance --device {HOST} --level 1" in found["said"]


def test_the_sanitizer_of_a_wheel_is_found(
    cuda_parts: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """NVIDIA's wheels install it outside of PATH."""
    monkeypatch.setattr(cuda_parts.shutil, "which", lambda *words, **options: None)
    monkeypatch.setattr(cuda_parts.site, "getsitepackages", lambda: [str(tmp_path)])
    assert cuda_parts.sanitizer_path() is None
    program = tmp_path / "nvidia" / "cu13" / "bin" / "compute-sanitizer"
    program.parent.mkdir(parents=True)
    program.write_text("")
    assert cuda_parts.sanitizer_path() is None
    program.chmod(0o755)
    assert cuda_parts.sanitizer_path() == str(program)
