"""The documentation generated from the registry of public names."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from candelabra.library import METHODS, entries, public_function, public_names, title_of

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import operators  # noqa: E402 - after the path is set


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return every page by name."""
    folder = tmp_path_factory.mktemp("operators")
    (folder / "gone.md").write_text("a family that is no more")
    operators.write(folder)
    return {page.stem: page.read_text() for page in folder.glob("*.md")}


def section(pages: dict[str, str], name: str) -> str:
    """Return the single section of a public name."""
    whole = "\n".join(text for page, text in pages.items() if page not in ("index", "internal")) + "\n## "
    (found,) = re.findall(rf"^## {re.escape(name)}\n(.+?)\n## ", whole, re.S | re.M)
    return str(found)


def test_every_public_name_is_documented_once(pages: dict[str, str]) -> None:
    """Each function, alias and method is a form of one section, and each section has a heading."""
    headings = Counter(
        heading
        for page, text in pages.items()
        if page not in ("index", "internal")
        for heading in re.findall(r"^## (.+)$", text, re.M)
    )
    assert [name for name, count in headings.items() if count > 1] == []
    assert set(headings) == {title_of(entry) for entry in entries()}
    forms = Counter(re.findall(r"`((?:candelabra|Tensor)\.[^`]+)`", " ".join(form_lines(pages))))
    functions = [f"candelabra.{name}" for name in public_names() if public_function(name) is not None]
    assert {name: forms[name] for name in [*functions, *(f"Tensor.{m}" for m in METHODS)] if forms[name] != 1} == {}


def form_lines(pages: dict[str, str]) -> list[str]:
    """Return the lines of all pages that list the forms of a name."""
    return [line for text in pages.values() for line in text.splitlines() if line.startswith("- forms: ")]


def test_every_link_between_pages_leads_somewhere(pages: dict[str, str]) -> None:
    """Every linked page and fragment exists."""
    anchors = {
        f"{page}.md#{operators.anchor(heading)}"
        for page, text in pages.items()
        for heading in re.findall(r"^## (.+)$", text, re.M)
    }
    links = {found for text in pages.values() for found in re.findall(r"\]\(([\w-]+\.md#[^)]+)\)", text)}
    assert links
    assert not links - anchors


def test_the_index_links_every_section(pages: dict[str, str]) -> None:
    """Each link has the section's first sentence, under the title of its page."""
    listed = re.findall(r"^\| \[(.+?)\]\((.+?)\.md#", pages["index"], re.M)
    sections = [(heading, page) for page, text in pages.items() if page != "index" for heading in headings_of(text)]
    assert sorted(listed) == sorted(sections)


def headings_of(text: str) -> list[str]:
    """Return the titles of a page's sections."""
    return re.findall(r"^## (.+)$", text, re.M)


def test_pages_of_former_families_are_removed(pages: dict[str, str]) -> None:
    """The page of a former family is deleted."""
    assert "gone" not in pages
    assert "index" in pages


def test_a_record_says_shape_dtypes_derivative_and_devices(pages: dict[str, str]) -> None:
    """A section has the signature, the sentence of the record, and the facts derived from it."""
    found = section(pages, "atan2")
    assert "atan2(input: Tensor" in found
    assert "- forms: `candelabra.atan2`, `candelabra.arctan2`, `Tensor.atan2`, `Tensor.arctan2`" in found
    assert "- shape: all tensors broadcast together" in found
    assert "- dtypes: takes all but complex; integers and bools become the default float first" in found
    assert "- derivative: its own, with respect to `input`, `other`" in found
    assert "- devices: cpu: kernel" in found


def test_an_overload_set_shows_its_signatures_and_links_its_members(pages: dict[str, str]) -> None:
    """There is a signature for each overload, in the order in which they are tried."""
    found = section(pages, "max")
    assert re.findall(r"^max\((.+?)[,)]", found, re.M) == ["input: Tensor", "input: Tensor", "input: Tensor"]
    assert re.search(
        r"- overloads of: \[amax\]\(.+?#amax\), \[maximum\]\(.+?\), \[max_dim\]\(internal\.md#max_dim\)", found
    )


def test_a_public_callable_links_what_it_calls(pages: dict[str, str]) -> None:
    """The section has its signature with the grammar's keywords, and the operators that it calls."""
    found = section(pages, "zeros")
    assert found.count("requires_grad") == 1
    assert "out=None, layout=None" in found
    assert "- forms: `candelabra.zeros`" in found
    assert "- calls: [full](" in found
    assert "- forms: `Tensor.tolist`" in section(pages, "Tensor.tolist")


def test_a_section_that_would_hide_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two titles on one page would have the same anchor."""
    entry = next(iter(entries()))
    monkeypatch.setattr(operators, "documented", lambda: iter([entry, entry]))
    monkeypatch.setattr(operators, "instances", lambda name: [])
    with pytest.raises(ValueError, match=re.escape(f"{title_of(entry)} would occur twice on the page")):
        operators.sections()


@pytest.mark.thorough
def test_a_page_that_is_not_current_is_named(tmp_path: Path) -> None:
    """Changed, missing and surplus pages are stale; the devices with kernels may differ between machines."""
    operators.write(tmp_path)
    assert operators.stale(tmp_path) == []
    pages = sorted(page.name for page in tmp_path.glob("*.md") if "- devices: " in page.read_text())
    page = tmp_path / pages[0]
    page.write_text(page.read_text().replace("- devices: ", "- devices: acme: kernel; ", 1))
    assert operators.stale(tmp_path) == []
    page.write_text(page.read_text() + "more\n")
    (tmp_path / pages[1]).unlink()
    (tmp_path / "gone.md").write_text("a family that is no more")
    assert operators.stale(tmp_path) == sorted([*pages[:2], "gone.md"])


def test_the_command_says_which_pages_are_not_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit status is 1 and the command to run is printed; without ``--check`` it writes the pages."""
    few = list(entries())[:20]
    monkeypatch.setattr(operators, "documented", lambda: iter(few))
    monkeypatch.setattr(operators, "instances", lambda name: [])
    parsed = SimpleNamespace(folder=tmp_path, check=True)
    monkeypatch.setattr(operators.argparse.ArgumentParser, "parse_args", lambda self: parsed)
    assert operators.main() == 1
    assert "not current: run make docs" in capsys.readouterr().err
    parsed.check = False
    assert operators.main() == 0
    parsed.check = True
    assert operators.main() == 0
