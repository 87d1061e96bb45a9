"""The guide for vendors runs unchanged, and names files that exist."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from candelabra.library import plugins
from candelabra_conformance.scaffold.write import FILES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adding-a-backend.md"
DEVICES = ("acme", "stone", "pretended")


@pytest.fixture
def vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a working folder; imports and registrations of the page are removed afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    modules = set(sys.modules)
    yield tmp_path
    for name in [n for n in set(sys.modules) - modules if n.partition(".")[0] == "candelabra_acme"]:
        del sys.modules[name]


def test_the_code_of_the_guide_runs(vendor: Path) -> None:
    """The code covers the generated package, training, capabilities, streams and immutable arrays."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    assert len(blocks) > 10
    names: dict[str, Any] = {"__name__": "page"}
    try:
        exec(compile("\n".join(blocks), str(PAGE), "exec", dont_inherit=True), names)
        assert not set(DEVICES) & set(plugins.plugins())
    finally:
        for remove in ("remove", "remove_fake", "remove_stone"):
            names.get(remove, lambda: None)()


def test_files_that_the_guide_names_exist() -> None:
    """They are in this repository, or in the generated package."""
    text = re.sub(r"^```.*?^```", "", PAGE.read_text("utf-8"), flags=re.M | re.S)
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]+)`", text)
    assert len(named) >= 6
    assert [path for path in named if not (ROOT / path).exists() and path not in FILES.values()] == []
