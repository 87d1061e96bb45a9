"""The page of unsupported features describes the actual behaviour."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "not-supported.md"


def test_what_is_not_supported_is_absent_or_refused_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's code runs: names are absent, and errors have the quoted texts."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert len(blocks) == 2
    exec(compile("\n".join(blocks), str(PAGE), "exec", dont_inherit=True), {"__name__": "page"})


def test_its_links_lead_somewhere() -> None:
    """A linked page exists."""
    links = re.findall(r"\]\(([^)#]+)\)", PAGE.read_text())
    assert links
    assert [link for link in links if not (PAGE.parent / link).exists()] == []
