"""The recorder of results and programs of kernels: what it compares, and what it prints."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import kernel_digests

TWICE = "void twice(float* x) { for (int i = 0; i < 8; ++i) x[i] = %s; }\n"


def test_each_case_with_other_bits_is_listed() -> None:
    """A case that only one record has counts, too: its kernel served it before or serves it now."""
    before = {"cpu": {"exp float32 0": "a1", "exp float32 1": "b2", "exp float64 0": "c3"}}
    after = {"cpu": {"exp float32 0": "a1", "exp float32 1": "b9", "log float32 0": "d4"}}
    assert list(kernel_digests.changed_results(before, after)) == [
        "cpu: 3 cases, 3 with other bits", "  exp float32 1", "  exp float64 0", "  log float32 0",
    ]  # fmt: skip


def test_programs_of_another_text_and_the_same_machine_code_are_counted_and_not_listed() -> None:
    """A product has the same machine code in either order. Programs of CUDA are compared as text."""
    before = {"twice": [TWICE % "2.0f * x[i]", False], "more": [TWICE % "2.0f * x[i]", False]}
    after = {"twice": [TWICE % "x[i] * 2.0f", False], "more": [TWICE % "3.0f * x[i]", False], "new": ["", False]}
    records = ({"x86_64_v3": each, "cuda": each} for each in (before, after))
    assert list(kernel_digests.changed_programs(*records)) == [
        "x86_64_v3: 2 programs in both, 0 and 1 in one; 2 with another text, 1 of them with other machine code",
        "  more",
        "cuda: 2 programs in both, 0 and 1 in one; 2 with another text",
    ]


def test_a_record_compared_with_itself_has_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The host computes, and the programs of both processor levels and of CUDA are there."""
    file = str(tmp_path / "record.json")
    assert kernel_digests.main(["record", file, "--operators", "relu", "--devices", "cpu", "--dtypes", "float32"]) == 0
    found = json.loads(Path(file).read_text("utf-8"))
    assert found["results"]["cpu"]
    assert set(found["programs"]) == {"x86_64_v3", "x86_64_v4", "cuda"}
    assert all(found["programs"].values())
    assert kernel_digests.main(["compare", file, file]) == 0
    assert "0 with other bits" in capsys.readouterr().out
