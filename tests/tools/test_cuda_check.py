"""``make cuda-check`` without a GPU: what it runs, when it stops, and how it continues."""

from __future__ import annotations

import importlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import candelabra as cd
import pytest
from candelabra._device_properties import DeviceProperties
from candelabra._plugins.registry import reference_device
from candelabra.backend import DeviceInfo
from candelabra_clike.cache import ProgramCache

ROOT = Path(__file__).resolve().parents[2]
HOST = str(reference_device())


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """Return the tool with its own kernel cache."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path / "cache"))
    return importlib.import_module("cuda_check")


@pytest.fixture
def ran(check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Record the runs of three example parts, and whether they restart: one passes, one fails, one cannot run."""
    log: list[tuple[str, bool]] = []

    def part(name: str, verdict: str) -> Callable[[Any], object]:
        def run(arguments: Any) -> object:
            log.append((name, arguments.again))
            return check.part(verdict, f"{name} is done", output=["its output"])

        return run

    verdicts = {"one": "passed", "two": "failed", "three": "not run"}
    monkeypatch.setattr(check, "PARTS", {name: part(name, verdict) for name, verdict in verdicts.items()})
    return log


@pytest.fixture
def clock(check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the clock by ten seconds per read."""
    seconds = count(0, 10)
    ticking = SimpleNamespace(monotonic=lambda: float(next(seconds)), time=lambda: 0.0)
    monkeypatch.setattr(check, "time", ticking)
    monkeypatch.setattr(sys.modules["cuda_parts"], "time", ticking)


@pytest.mark.skipif(cd.cuda.is_available(), reason="there is a GPU, so it runs")
@pytest.mark.parametrize("words", [[], ["--look"]])
def test_without_a_gpu_it_says_why_and_exits_with_3(words: list[str]) -> None:
    """The reason is the device's, followed by the checks that need no GPU."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "cuda_check.py"), *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr.startswith("cuda-check cannot run on cuda:0: ")
    assert "driver" in done.stderr
    assert "make cuda-kernels" in done.stderr


def test_a_device_that_there_is_is_only_looked_at(check: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    """``--look`` prints the device and runs nothing."""
    assert check.main(["--device", HOST, "--look"]) == 0
    assert capsys.readouterr().out.startswith(f"{HOST}: ")


def test_the_facts_have_chip_and_versions(check: ModuleType) -> None:
    """Each figure has its source."""
    facts = check.facts(HOST)
    assert facts["chip"]
    assert facts["candelabra"] == cd.__version__
    assert {"Python", "system", "numpy", "scipy"} <= set(facts)


def test_versions_are_facts_as_text(check: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compute capability, a pair of numbers, is found in the name of an archive of kernels."""
    properties = DeviceProperties(DeviceInfo("a chip", {"compute": (9, 0), "memory": 80 << 30}))
    monkeypatch.setattr(getattr(cd, HOST), "get_device_properties", lambda index: properties)
    facts = check.facts(HOST)
    assert (facts["compute"], facts["memory"]) == ("9.0", "80.0 GiB")


def test_what_a_missing_program_would_say_is_no_fact(check: ModuleType) -> None:
    """The output of a program that is missing or fails is not a fact."""
    assert check.lines("no-such-program") == []
    assert check.lines("git", "no-such-command") == []
    assert check.lines("git", "--version")


def test_the_parts_come_in_the_order_of_what_they_say(check: ModuleType) -> None:
    """The most informative part per minute is first, so that a short run includes it."""
    assert list(check.PARTS) == [
        "a first kernel", "demo", "conformance, level 1 quick", "benchmarks", "conformance, level 2", "on the device",
        "conformance, level 3", "sanitizer",
    ]  # fmt: skip


def test_parts_become_a_report(check: ModuleType, ran: list[tuple[str, bool]], tmp_path: Path) -> None:
    """Chosen parts run in order, the report is written, and a failure is the exit status."""
    words = ["--device", HOST, "--folder", str(tmp_path)]
    assert check.main([*words, "--parts", "one;three"]) == 0
    assert [name for name, _ in ran] == ["one", "three"]
    assert check.main([*words, "--parts", "two"]) == 1
    (file,) = tmp_path.glob("*.json")
    content = json.loads(file.read_text())
    assert {name: part["verdict"] for name, part in content["parts"].items()} == {
        "one": "passed", "three": "not run", "two": "failed",
    }  # fmt: skip
    text = file.with_suffix(".md").read_text()
    assert "| two | failed | two is done |" in text
    assert text.count("its output") == 1
    assert "Still to run" not in text


def test_a_short_run_stops_in_time_and_the_next_one_goes_on(
    check: ModuleType, ran: list[tuple[str, bool]], clock: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report lists the remaining parts, and no part runs twice."""
    words = ["--device", HOST, "--folder", str(tmp_path), "--minutes", "1.3"]
    assert check.main(words) == 0
    assert ran == [("one", False)]
    assert "still to run: two; three" in capsys.readouterr().out
    (page,) = tmp_path.glob("*.md")
    assert "**Still to run:** two; three." in page.read_text()
    assert check.main([*words[:-1], "9"]) == 1
    assert ran == [("one", False), ("two", False), ("three", False)]
    assert "Still to run" not in page.read_text()
    assert check.main([*words[:-1], "9"]) == 1
    assert len(ran) == 3
    assert check.main([*words[:-1], "9", "--parts", "three"]) == 1
    assert ran[3:] == [("three", True)]
    assert check.main([*words[:-1], "1.3", "--fresh"]) == 0
    assert ran[4:] == [("one", False)]
    assert "**Still to run:** two; three." in page.read_text()


def test_a_part_that_the_time_cuts_is_unfinished(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not a failure, and runs again."""

    def cut(arguments: Any) -> object:
        raise sys.modules["cuda_parts"].TimeUp(["so far"])

    monkeypatch.setattr(check, "PARTS", {"one": cut})
    words = ["--device", HOST, "--folder", str(tmp_path), "--minutes", "9"]
    assert check.main(words) == 0
    assert "one: unfinished: stopped when the time was up" in capsys.readouterr().out
    monkeypatch.setattr(
        check, "PARTS", {"one": lambda arguments: check.part("passed", "again" if arguments.again else "on")}
    )
    assert check.main(words) == 0
    assert "one: passed: on" in capsys.readouterr().out


def test_nothing_runs_after_a_device_on_which_no_kernel_works(
    check: ModuleType, ran: list[tuple[str, bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The remaining time would be wasted."""
    broken = lambda arguments: check.part("failed", "no kernel", fatal=True)  # noqa: E731
    monkeypatch.setattr(check, "PARTS", {"first": broken, **check.PARTS})
    assert check.main(["--device", HOST, "--folder", str(tmp_path)]) == 1
    assert ran == []


def test_kernels_are_counted_by_where_they_came_from(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cached and compiled kernels are counted by name."""
    ready, compiled = "0" * 64, "1" * 64
    prebuilt, programs = (ProgramCache(tmp_path / "cache" / "cuda" / name) for name in ("prebuilt", "programs"))
    prebuilt.write(ready, b"\x7fELF .text.add_float32 ")
    os.utime(prebuilt.path(ready), (0, 0))

    def launches(arguments: Any) -> object:
        prebuilt.read(ready)
        programs.write(compiled, b"\x7fELF .text.mul_float32 ")
        return check.part("passed", "done")

    monkeypatch.setattr(check, "PARTS", {"one": launches, "two": launches})
    assert check.main(["--device", HOST, "--folder", str(tmp_path)]) == 0
    (file,) = tmp_path.glob("*.json")
    parts = json.loads(file.read_text())["parts"]
    assert [parts[name]["ready"] for name in parts] == [1, 0]
    assert [parts[name]["compiled"] for name in parts] == [["mul_float32"], []]
    assert "| one | passed | done | 1 ready, 1 compiled |" in file.with_suffix(".md").read_text()


def test_an_archive_of_kernels_is_unpacked_before_the_parts_run(
    check: ModuleType, ran: list[tuple[str, bool]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The report has their number; a file that is not an archive is an invalid argument."""
    source = ProgramCache(tmp_path / "source")
    source.write("0" * 64, b"\x7fELF")
    sys.modules["cuda_archive"].pack(source, ["0" * 64], tmp_path / "kernels.tar.xz")
    words = ["--device", HOST, "--folder", str(tmp_path), "--parts", "one", "--kernels"]
    assert check.main([*words, str(tmp_path / "kernels.tar.xz")]) == 0
    assert ProgramCache(tmp_path / "cache" / "cuda" / "prebuilt").read("0" * 64) == b"\x7fELF"
    (file,) = tmp_path.glob("*.json")
    facts = json.loads(file.read_text())["facts"]
    assert facts["kernels"] == "1 from kernels.tar.xz"
    assert facts["NVRTC"].endswith("through cuda.bindings")
    for wrong in (file, tmp_path / "missing.tar.xz"):
        with pytest.raises(SystemExit, match="2"):
            check.main([*words, str(wrong)])
    said = capsys.readouterr().err
    assert "is not an archive of `make cuda-kernels`" in said
    assert "No such file" in said


def is_gone(process: int, seconds: float) -> bool:
    """Return whether a process is gone in time. An ended process whose parent is gone stays until the system collects
    it.
    """
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
    return False


def test_a_check_that_is_ended_ends_what_it_runs(tmp_path: Path) -> None:
    """After a signal of a scheduler no child process holds the GPU."""
    program = tmp_path / "ended.py"
    program.write_text(
        f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r})\n"
        "import runpy, cuda_parts\n"
        "from pathlib import Path\n"
        "sleeps = [sys.executable, '-c', 'import os, time; print(os.getpid(), flush=True); time.sleep(600)']\n"
        f"cuda_parts.PARTS = {{'one': lambda given: given.output(sleeps, 500.0)}}\n"
        f"sys.argv = ['cuda_check.py', '--device', {HOST!r}, '--folder', {str(tmp_path)!r}]\n"
        f"runpy.run_path({str(ROOT / 'tools' / 'cuda_check.py')!r}, run_name='__main__')\n"
    )
    environment = {**os.environ, "CANDELABRA_CACHE": str(tmp_path / "cache")}
    running = subprocess.Popen([sys.executable, str(program)], env=environment)
    while not (found := [path.read_text() for path in tmp_path.glob("*.parts/one.log")]) or not found[0].strip():
        assert running.poll() is None
    running.send_signal(signal.SIGTERM)
    assert running.wait() == 128 + signal.SIGTERM
    assert is_gone(int(found[0]), 60)


def test_without_a_limit_the_time_is_never_up(check: ModuleType, tmp_path: Path) -> None:
    """Parts then have no deadline."""
    arguments = sys.modules["cuda_parts"].CheckRun(HOST, "", "", "", 1, True, 1, tmp_path)
    assert arguments.left() == math.inf
    assert arguments.stopping() == []
