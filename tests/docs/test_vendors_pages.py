"""The pages for vendors: their blocks, typed into files in an empty folder, run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from candelabra_conformance.scaffold.write import STRIDED, WRAPPED

from tests.docs.typed import executed, installed, typed

ROOT = Path(__file__).parents[2]
PAGES = ["docs/adding-a-backend.md", "docs/your-array-library.md", "docs/operators-of-your-own.md"]
SLOW = {"docs/your-array-library.md"}
"""Pages that ``make test-all`` runs: the steps of this one are those of adding-a-backend.md, with another generated
package, which tests/conformance/test_scaffold_arrayapi.py tries."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.thorough) if page in SLOW else page for page in PAGES]
)
def test_the_blocks_of_a_page_run_when_they_are_typed_into_files(page: str, tmp_path: Path) -> None:
    """Top to bottom, in a process of its own, without a warning."""
    program = typed(ROOT / page, tmp_path)
    assert program.read_text().count("\n") > 20
    executed(program.name, folder=tmp_path, environment=installed(tmp_path))


def test_explain_finds_operators_of_plugins(tmp_path: Path) -> None:
    """The command knows the operator of docs/operators-of-your-own.md, although no tensor and no device exists."""
    typed(ROOT / "docs/operators-of-your-own.md", tmp_path)
    shown = executed(
        "-m", "candelabra._cli.main", "explain", "squash", folder=tmp_path, environment=installed(tmp_path)
    )
    assert "squash on cpu" in shown
    assert "=> 5. composite: the body runs" in shown


@pytest.mark.parametrize("page", PAGES)
def test_links_and_files_that_a_page_names_exist(page: str) -> None:
    """Links lead to pages and headings; files are in this repository or in a generated package."""
    text = (ROOT / page).read_text("utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    headings = {
        re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in re.findall(r"^##+ (.*)$", prose, re.M)
    }
    for path, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", prose):
        assert "://" in path or ((ROOT / page).parent / path).exists(), path
        assert path or anchor in headings, anchor
    generated = {*STRIDED.values(), *WRAPPED.values()}
    named = re.findall(r"`((?:[\w.-]+/)+[\w.-]+\.\w+)`", prose)
    assert [path for path in named if not (ROOT / path).exists() and path not in generated] == []
