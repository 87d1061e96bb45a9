"""``make cuda-check`` as far as it goes without a GPU: its parts on the host, its report, and why it does not run."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import candelabra as cd
import pytest
from candelabra._plugins.registry import reference_device

ROOT = Path(__file__).resolve().parents[2]
HOST = str(reference_device())


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("cuda_check")


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """What writes its report."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("cuda_report")


def given(check: ModuleType, **changed: object) -> object:
    """What the command line says, for the host."""
    usual = {
        "device": HOST, "peer": sys.executable, "library": "candelabra", "size": "tiny", "jobs": 1, "quick": True,
        "epochs": 1,
    }  # fmt: skip
    return check.Given(**{**usual, **changed})


@pytest.mark.skipif(cd.cuda.is_available(), reason="there is a GPU, so it runs")
@pytest.mark.parametrize("words", [[], ["--look"]])
def test_without_a_gpu_it_says_why_and_exits_with_3(words: list[str]) -> None:
    """The reason is that of the device, and what can be done without one is said."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "cuda_check.py"), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr.startswith("cuda-check cannot run on cuda:0: ")
    assert "driver" in done.stderr
    assert "tools/cuda_kernels.py" in done.stderr


def test_a_device_that_there_is_is_only_looked_at(check: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """``--look`` says which device that is and runs nothing."""
    assert check.main(["--device", HOST, "--look"]) == 0
    assert capsys.readouterr().out.startswith(f"{HOST}: ")


def test_the_facts_have_chip_and_versions(check: ModuleType) -> None:
    """Where a figure comes from is written beside it."""
    facts = check.facts(HOST)
    assert facts["chip"]
    assert facts["candelabra"] == cd.__version__
    assert {"Python", "system", "numpy"} <= set(facts)


def test_parts_become_a_report(check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chosen parts run in order, the report is written, and a failure is the exit status."""
    ran = []

    def part(name: str, verdict: str) -> object:
        return lambda given: ran.append(name) or check.part(verdict, f"{name} is done", output=["its output"])

    verdicts = {"one": "passed", "two": "failed", "three": "not run"}
    parts = {name: part(name, verdict) for name, verdict in verdicts.items()}
    monkeypatch.setattr(check, "PARTS", parts)
    words = ["--device", HOST, "--folder", str(tmp_path)]
    assert check.main([*words, "--parts", "one;three"]) == 0
    assert ran == ["one", "three"]
    assert check.main([*words, "--parts", "two"]) == 1
    (file,) = tmp_path.glob("*.json")
    content = json.loads(file.read_text())
    assert {name: part["verdict"] for name, part in content["parts"].items()} == {
        "one": "passed", "three": "not run", "two": "failed",
    }  # fmt: skip
    text = file.with_suffix(".md").read_text()
    assert "| two | failed | two is done |" in text
    assert text.count("its output") == 1


def test_a_report_is_named_by_device_chip_and_day(report: ModuleType, tmp_path: Path) -> None:
    """What ran before on that day stays in it; another day is another file."""
    facts = {"chip": "NVIDIA H200 | 141GB", "driver": "13.2"}
    first = report.Report(tmp_path, "cuda", facts, "2026-01-02")
    first.add("conformance, level 2", report.part(report.PASSED, "20 passed"))
    assert first.path.name == "cuda-h200-141gb-2026-01-02.json"
    again = report.Report(tmp_path, "cuda", facts, "2026-01-02")
    detail = {"head": ["case"], "rows": [["x"]], "failures": ["f"], "output": ["o"]}
    again.add("benchmarks", report.part(report.FAILED, "a|b", **detail))
    assert list(again.parts) == ["conformance, level 2", "benchmarks"]
    assert not again.passed()
    text = again.path.with_suffix(".md").read_text()
    assert "| chip | NVIDIA H200 \\| 141GB |" in text
    assert "| conformance, level 2 | passed | 20 passed |" in text
    assert "## benchmarks\n\n- `f`\n\n| case |\n|---|\n| x |\n\n```\no\n```" in text


def test_a_level_is_judged_by_the_suite(check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite runs on the device, and its counts are the part's sentence."""
    monkeypatch.setattr(check, "SHORT", ("trunc",))
    found = check.conformance(1)(given(check))
    assert found["verdict"] == "passed"
    assert found["counts"]["passed"] > 10
    assert found["failures"] == []


def test_failures_of_the_suite_are_named(check: ModuleType) -> None:
    """A case that failed is in the report by its id and the first line of its message."""
    columns = ["operator", "property", "dtype", "layout", "verdict", "message", "uses"]
    rows = [["add", "value", "float32", "step", "failed", "is 1\nand 2"], ["sub", "value", "bool", "", "passed"]]
    content = {"columns": columns, "results": rows, "counts": {"failed": 1}, "seconds": 2.0, "level": -1}
    found = check.judged(content, 1, ["the end"])
    assert (found["verdict"], found["said"]) == ("failed", "1 failed; 2 s")
    assert found["failures"] == ["add/value/float32/step is 1"]


def test_a_suite_that_cannot_run_is_a_failure(check: ModuleType) -> None:
    """A device that there is not is said with the suite's own words."""
    found = check.conformance(1)(given(check, device="nonsense"))
    assert found["verdict"] == "failed"
    assert found["said"] == "the suite wrote no report (exit status 2)"
    assert "nonsense" in "\n".join(found["output"])


def test_a_peer_that_is_not_there_is_a_failure_that_says_what_to_install(check: ModuleType) -> None:
    """The other parts go on, so this one only says what it lacks."""
    found = check.benchmarks(given(check, peer="no/such/python"))
    assert found["verdict"] == "failed"
    assert "no/such/python does not exist" in found["said"]
    assert "make .venv-peer/.peer" in found["said"]


def test_the_sanitizer_is_left_out_where_it_is_not_installed(
    check: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is no failure, and the report says what would bring it."""
    monkeypatch.setattr(check.shutil, "which", lambda *words, **options: None)
    assert check.sanitizer(given(check)) == {
        "verdict": "not run", "said": "compute-sanitizer is not installed: it comes with NVIDIA's CUDA toolkit",
    }  # fmt: skip


def test_the_sanitizer_is_given_a_short_run(check: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where it is installed it runs the suite on few operators, and its summary is the sentence."""
    program = tmp_path / "compute-sanitizer"
    program.write_text('#!/bin/sh\necho "========= ERROR SUMMARY: 2 errors $*"\nexit 9\n')
    program.chmod(0o755)
    monkeypatch.setattr(check.shutil, "which", lambda *words, **options: str(program))
    found = check.sanitizer(given(check))
    assert found["verdict"] == "failed"
    assert found["said"].startswith("ERROR SUMMARY: 2 errors --tool memcheck")
    assert f"conformance --device {HOST} --level 1" in found["said"]


def test_a_part_that_takes_too_long_is_stopped(check: ModuleType) -> None:
    """What it said until then is kept."""
    code, said = check.output([sys.executable, "-uc", "print('so far'); import time; time.sleep(60)"], 1.0)
    assert code == 124
    assert said == ["so far", "stopped after 1 s"]


def test_the_demo_is_a_part(check: ModuleType) -> None:
    """It learns on the device; its row of the table is the sentence."""
    found = check.demo(given(check))
    assert found["verdict"] == "passed"
    assert found["said"].startswith(HOST)
