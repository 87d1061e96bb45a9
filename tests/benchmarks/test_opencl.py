"""The benchmark of OpenCL: it runs on a device without a peer, and reports its measurements."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.opencl.__main__ import devices, main
from benchmarks.opencl.cases import CASES, SIZES, Compared
from benchmarks.opencl.report import Measured, slug_of, text, write

ABSENT = ["--peer", "no-python", "--tinygrad", "no-python"]
CASE = Compared("x + y", "torch", "x + y", "", mark=1.15, goal=0.5)
FACTS = {"driver": "Some Driver 1.2"}


def test_a_report_is_written_without_peers(tmp_path: Path) -> None:
    """Each case that needs no peer's text gets our time; the page names driver, processor and absent peers."""
    driver = devices("")[0].pattern.split("*")[1].strip()
    given = ["--sizes", "tiny", "--rounds", "1", "--seconds", "0", "--report", str(tmp_path), *ABSENT]
    assert main([*given, "--driver", driver, "--only", "x"]) == 0
    (written,) = tmp_path.glob("opencl-*.json")
    rows = json.loads(written.read_text("utf-8"))["rows"]
    assert {row["case"] for row in rows} == {case.name for case in CASES if "x" in case.name}
    assert all(min(row["ours_us"]) > 0 and not row["trouble"] for row in rows)
    page = written.with_suffix(".md").read_text("utf-8")
    assert "| processor | " in page
    assert "| tinygrad on OpenCL | not installed |" in page


def test_a_missing_driver_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is measured, and the exit code is an error."""
    assert main(["--driver", "no such driver", *ABSENT]) == 1
    assert "no OpenCL driver has 'no such driver' in its description" in capsys.readouterr().out


def test_the_smallest_times_decide() -> None:
    """A ratio compares the fastest times; the ratio of the medians is printed next to it."""
    measured = Measured(CASE, [2e-3, 9e-3, 3e-3], [2e-3, 2e-3, 2e-3])
    assert measured.ratio == 1.0
    assert measured.middle == 1.5
    assert measured.holds(1.0)


def test_a_missed_mark_is_said(tmp_path: Path) -> None:
    """The table and a line below it show it; an implementation may have a mark three times as large."""
    measured = [Measured(CASE, [2.0], [1.0])]
    page = write(tmp_path, "some", FACTS, measured, 1.0).read_text("utf-8")
    assert "| x + y | 2000.00 ms | 1000.00 ms | 2.00 | 2.00 | 1.15 | 0.50 | **no** |" in page
    assert "Missed: x + y." in page
    assert "Every mark that was measured holds." in text(FACTS, measured, 3.0)


def test_a_limit_needs_no_peer() -> None:
    """A mark in microseconds applies to our time alone; a ratio without a peer is not judged."""
    limited = CASE._replace(limit=9.0)
    assert Measured(limited, [8e-6], []).holds(1.0)
    assert Measured(limited, [10e-6], []).holds(1.0) is False
    assert Measured(CASE, [1.0], []).holds(1.0) is None


def test_failures_are_reported_with_the_reason() -> None:
    """A side that fails is a dash and a line with the reason, and the other cases count."""
    page = text(FACTS, [Measured(CASE, [], [], "torch, x + y: ValueError: no")], 1.0)
    assert "| x + y | – | – |" in page
    assert "- x + y, torch: torch, x + y: ValueError: no" in page


def test_implementations_have_short_names() -> None:
    """Short names are parts of the reports' file names."""
    assert slug_of("Portable Computing Language", "3.0-rc2") == "pocl-3.0-rc2"
    assert slug_of("Portable Computing Language", "3.1+debian") == "pocl-3.1"
    assert slug_of("Intel(R) OpenCL", "2026.22.10.0.01_160000") == "intel-2026.22"


@pytest.mark.parametrize("sizes", SIZES)
def test_both_sides_of_a_case_know_the_sizes(sizes: str) -> None:
    """Each text of either side begins with the requested sizes."""
    for case in CASES:
        for ours in (True, False):
            assert case.case(ours, sizes).setup.startswith(f"n = {SIZES[sizes]['n']}; rows = ")
