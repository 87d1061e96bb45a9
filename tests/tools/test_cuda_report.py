"""The report of ``make cuda-check``: its name, its content, and which report a run continues."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FACTS = {"chip": "NVIDIA H200 | 141GB", "driver": "13.2", "commit": "abc"}


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the module."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("cuda_report")


def test_a_report_is_named_by_device_chip_and_day(report: ModuleType, tmp_path: Path) -> None:
    """Earlier parts of the day stay in the report; another day has another file."""
    first = report.Report(tmp_path, "cuda", FACTS, "2026-01-02", ["conformance, level 2", "benchmarks"])
    first.add("conformance, level 2", report.part(report.PASSED, "20 passed"))
    assert first.path.name == "cuda-h200-141gb-2026-01-02.json"
    again = report.Report(tmp_path, "cuda", FACTS, "2026-01-02", ["conformance, level 2", "benchmarks"])
    detail = {"head": ["case"], "rows": [["x"]], "failures": ["f"], "output": ["o"], "ready": 3, "compilations": 2}
    again.add("benchmarks", report.part(report.FAILED, "a|b", **detail))
    assert list(again.part_results) == ["conformance, level 2", "benchmarks"]
    assert not again.passed()
    text = again.path.with_suffix(".md").read_text()
    assert "| chip | NVIDIA H200 \\| 141GB |" in text
    assert "| conformance, level 2 | passed | 20 passed |  |" in text
    assert "| benchmarks | failed | a\\|b | 3 ready, 2 compiled |" in text
    assert "## benchmarks\n\n- `f`\n\n| case |\n|---|\n| x |\n\n```\no\n```" in text


def test_what_is_unfinished_is_gone_on_with_on_another_day(report: ModuleType, tmp_path: Path) -> None:
    """This ends when nothing remains; then another day has another report."""
    names = ["one", "two"]
    first = report.Report(tmp_path, "cuda", FACTS, "2026-01-02", names, going_on=True)
    first.add("one", report.part(report.UNFINISHED, "half"))
    assert first.remaining == ["one", "two"]
    assert first.passed()
    assert json.loads(first.path.read_text())["remaining"] == ["one", "two"]
    other_chip = report.Report(tmp_path, "cuda", FACTS | {"chip": "NVIDIA H200"}, "2026-01-03", names, going_on=True)
    assert other_chip.path.name == "cuda-h200-2026-01-03.json"
    second = report.Report(tmp_path, "cuda", FACTS, "2026-01-03", names, going_on=True)
    assert second.path == first.path
    assert second.state == first.state
    second.add("one", report.part(report.PASSED, "all"))
    second.add("two", report.part(report.NOT_RUN, "not here"))
    assert second.remaining == []
    third = report.Report(tmp_path, "cuda", FACTS, "2026-01-03", names, going_on=True)
    assert third.path.name == "cuda-h200-141gb-2026-01-03.json"
    assert third.part_results == {}


def test_a_run_without_a_limit_of_time_makes_the_days_own_report(report: ModuleType, tmp_path: Path) -> None:
    """A run that restarts does the same, and ignores earlier unfinished parts."""
    first = report.Report(tmp_path, "cuda", FACTS, "2026-01-02", ["one"])
    first.add("one", report.part(report.UNFINISHED, "half"))
    first.state.mkdir()
    assert report.Report(tmp_path, "cuda", FACTS, "2026-01-03", ["one"]).path != first.path
    fresh = report.Report(tmp_path, "cuda", FACTS, "2026-01-02", ["one"], going_on=True, fresh=True)
    assert fresh.part_results == {}
    assert not first.state.exists()


def test_failures_of_an_unfinished_part_are_failures(report: ModuleType, tmp_path: Path) -> None:
    """They are reported before the part is complete."""
    made = report.Report(tmp_path, "cuda", FACTS, "2026-01-02", ["one"])
    made.add("one", report.part(report.UNFINISHED, "half", failures=["add/value/float32"]))
    assert not made.passed()
    assert "- `add/value/float32`" in made.path.with_suffix(".md").read_text()


def test_a_part_of_another_commit_says_so(report: ModuleType, tmp_path: Path) -> None:
    """A report of several runs may cover several commits."""
    report.Report(tmp_path, "cuda", FACTS, "2026-01-02", ["one"]).add("one", report.part(report.PASSED, "fine"))
    later = report.Report(tmp_path, "cuda", FACTS | {"commit": "def"}, "2026-01-02", ["one"])
    later.add("two", report.part(report.PASSED, "fine"))
    text = later.path.with_suffix(".md").read_text()
    assert "| one | passed | fine (of commit abc) |" in text
    assert "| two | passed | fine |" in text
