"""The page of the operators that fall back on a device."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from candelabra._cli.routes import instances
from candelabra.library import OPERATORS

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import fallbacks  # noqa: E402 - after the path is set


def test_what_falls_back_is_listed_and_nothing_else() -> None:
    """A decomposition has no kernel on the device, a sum has one; composites of the former are listed with it."""
    (instance,) = instances("opencl:0")
    page = fallbacks.text(instance, ["add", "linalg_eigh", "linalg_svd", "pseudo_inverse", "sum"])
    every, _, bodies = page.partition("## Functions whose body calls one of these")
    assert "- `linalg_svd`\n" in every
    assert "`add`" not in page
    assert "`sum`" not in page
    assert "- `pseudo_inverse`: linalg_eigh, linalg_svd" in bodies


def test_every_operator_is_served() -> None:
    """Every operator has a kernel, a body or a fallback. ``make lint`` checks that the page is current."""
    page = (fallbacks.REPORTS / "opencl-fallbacks.md").read_text("utf-8")
    assert "## In every dtype" in page
    assert "## Not served" not in page


@pytest.mark.thorough
def test_a_page_that_is_not_current_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--check` fails before the page is written and after a change, and does not change it."""
    (instance,) = instances("opencl:0")
    page = fallbacks.text(instance, sorted(OPERATORS))
    monkeypatch.setattr(fallbacks, "REPORTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["fallbacks.py", "--check"])
    assert fallbacks.main() == 1
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(sys, "argv", ["fallbacks.py"])
    assert fallbacks.main() == 0
    assert (tmp_path / "opencl-fallbacks.md").read_text("utf-8") == page
    monkeypatch.setattr(sys, "argv", ["fallbacks.py", "--check"])
    assert fallbacks.main() == 0
    assert "is not current: run tools/fallbacks.py --device opencl:0" in capsys.readouterr().out
