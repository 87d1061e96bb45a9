"""The documentation that is generated from records and fronts."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from candelabra._namespace.publishing import public_function, public_names

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import operators  # noqa: E402 - after the path is set


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every page by name."""
    folder = tmp_path_factory.mktemp("operators")
    (folder / "gone.md").write_text("a family that is no more")
    operators.write(folder)
    return {page.stem: page.read_text() for page in folder.glob("*.md")}


def test_every_public_function_is_documented(pages: dict[str, str]) -> None:
    """Each name of the module stands on a page, as a heading or among the forms of one."""
    whole = "\n".join(pages.values())
    missing = [n for n in public_names() if public_function(n) is not None and f"`candelabra.{n}`" not in whole]
    assert not missing


def test_every_link_between_pages_leads_somewhere(pages: dict[str, str]) -> None:
    """Every page and fragment that is linked exists."""
    anchors = {
        f"{page}.md#{operators.anchor(heading)}"
        for page, text in pages.items()
        for heading in re.findall(r"^## (.+)$", text, re.M)
    }
    links = {found for text in pages.values() for found in re.findall(r"\]\(([\w-]+\.md#[^)]+)\)", text)}
    assert links
    assert not links - anchors


def test_pages_of_families_that_are_gone_are_removed(pages: dict[str, str]) -> None:
    """What was generated once and is no family any more does not stay behind."""
    assert "gone" not in pages
    assert "index" in pages


def test_a_record_says_shape_dtypes_derivative_and_devices(pages: dict[str, str]) -> None:
    """A section has the signature, the sentence of the record, and what is computed from it."""
    (section,) = re.findall(r"## atan2\n(.+?)\n## ", pages["arithmetic"], re.S)
    assert "atan2(input: Tensor" in section
    assert "- forms: `candelabra.atan2`, `Tensor.atan2`, `Tensor.atan2_`" in section
    assert "- shape: all tensors broadcast together" in section
    assert "- dtypes: takes all but complex; integers and bools become the default float first" in section
    assert "- derivative: its own, with respect to `input`, `other`" in section
    assert "- devices: cpu: kernel" in section


def test_a_front_over_a_record_of_its_name_tells_of_the_record_too(pages: dict[str, str]) -> None:
    """The overloaded function's own signature, and the record's dtypes and derivative."""
    (section,) = re.findall(r"## add\n(.+?)\n## ", pages["arithmetic"], re.S)
    assert "alpha" in section
    assert "- derivative: its own, with respect to `input`, `other`" in section


def test_a_page_that_is_not_current_is_named(tmp_path: Path) -> None:
    """Changed, missing and surplus pages are stale; which devices have a kernel may differ from machine to machine."""
    operators.write(tmp_path)
    assert operators.stale(tmp_path) == []
    page = tmp_path / "arithmetic.md"
    page.write_text(page.read_text().replace("- devices: ", "- devices: acme: kernel; ", 1))
    assert operators.stale(tmp_path) == []
    page.write_text(page.read_text() + "more\n")
    (tmp_path / "calculus.md").unlink()
    (tmp_path / "gone.md").write_text("a family that is no more")
    assert operators.stale(tmp_path) == ["arithmetic.md", "calculus.md", "gone.md"]
