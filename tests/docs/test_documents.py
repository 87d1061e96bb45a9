"""The documents' code runs unchanged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from candelabra import _journal as journal
from candelabra._namespace.index import load_all

ROOT = Path(__file__).parents[2]


def blocks(path: Path) -> str:
    """Return every Python block of a page, in order."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S))


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/adding-an-operator.md",
        "docs/tour.md",
        "docs/array-api.md",
        "docs/checking-programs.md",
        "docs/opencl.md",
        "docs/loading-data.md",
        "nn/README.md",
        "docs/distributions.md",
        "docs/transforms.md",
        "docs/compile.md",
        "docs/distributed.md",
    ],
)
def test_the_code_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The code of a page runs from top to bottom without an error."""
    monkeypatch.chdir(tmp_path)
    # A page is a program of its own: devices that other tests have used do not keep its workers from being forked.
    monkeypatch.setattr("candelabra.utils.data._utils.worker_pool.open_instances", list)
    load_all()  # The first import that a page requires belongs to the library and stays.
    names: dict[str, Any] = {"__name__": "page"}
    with journal.Recording() as declared:
        code = blocks(ROOT / page)
        assert code
        try:
            exec(compile(code, page, "exec", dont_inherit=True), names)
        finally:
            declared.undo()


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/tour.md",
        "docs/adding-an-operator.md",
        "docs/array-api.md",
        "docs/checking-programs.md",
        "docs/opencl.md",
        "docs/loading-data.md",
        "docs/distributions.md",
        "docs/transforms.md",
        "docs/compile.md",
        "docs/distributed.md",
        "docs/writing.md",
        "CONTRIBUTING.md",
    ],
)
def test_files_that_a_page_names_exist(page: str) -> None:
    """A path in backquotes, or a link, exists."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    for link in links:
        assert ((ROOT / page).parent / link).exists(), link
    roots = [ROOT, ROOT / "core/src/candelabra"]
    for path in re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|md|toml))`", text):
        assert "NNNN" in path or any((root / path).exists() for root in roots), path
