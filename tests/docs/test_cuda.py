"""The code of docs/cuda.md runs on another asynchronous device, since none of it depends on CUDA."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import candelabra as cd
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "cuda.md"


def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """The OpenCL device replaces CUDA's unless there is a GPU."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert len(blocks) == 4
    names: dict[str, Any] = {}
    for block in blocks:
        code = block if cd.cuda.is_available() else block.replace("cuda", "opencl")
        exec(compile(code, "docs/cuda.md", "exec", dont_inherit=True), names)
    assert "4194304" in capsys.readouterr().out


def test_the_page_says_what_has_not_been_run() -> None:
    """Neither the page nor README claims verification before there is a report of a GPU."""
    reports = list((PAGE.parent / "reports").glob("cuda-*.json"))
    text = PAGE.read_text()
    assert bool(reports) != ("has not yet been run on a GPU" in text)
    assert "It is untested" in text


def test_the_page_names_what_there_is() -> None:
    """Links and files exist."""
    text = re.sub(r"^```.*?^```", "", PAGE.read_text(), flags=re.M | re.S)
    for path in re.findall(r"`(tests/[\w./-]+\.py)`", text):
        assert (PAGE.parents[1] / path).exists()
