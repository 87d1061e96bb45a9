"""The HTML report in a real browser: addresses, keyboard use, tens of thousands of cases, and printing."""

from __future__ import annotations

from pathlib import Path

import pytest
from candelabra_conformance import model

from tests.conformance.browser import Browser
from tests.conformance.example_runs import DTYPES, PROGRAM, PROPERTIES, large_run, nasty_run, result, run
from tests.conformance.report_page import Page

# Addresses


@pytest.mark.parametrize(
    ("fragment", "title", "detail"),
    [
        ("#softmax", "softmax: 10 cases", []),
        ("#softmax/float16", "softmax/float16: 9 cases", []),
        ("#softmax/failed", "softmax/failed: 1 case", ["softmax/failed/float16"]),
        ("#softmax/-", "softmax/-: 1 case", ["softmax/errors/transposed"]),
        ("#softmax/errors/transposed", "softmax: 1 case", ["softmax/errors/transposed"]),
        ("#softmax/failed/float16", "softmax/float16: 9 cases", ["softmax/failed/float16"]),
        ("#softmax/timed%20out/float16", "softmax/float16: 9 cases", ["softmax/timed out/float16"]),
        ("#device", "device: 1 case", ["device/copy/float32"]),
        ("#nothing", "nothing: 0 cases", []),
        ("#softmax/nothing", "softmax/nothing: 0 cases", []),
        ("#%E0%A4", "%E0%A4: 0 cases", []),
        ("", "all cases: 21 cases", []),
    ],
)
def test_an_address_leads_to_its_cases(
    browser: Browser, tmp_path: Path, fragment: str, title: str, detail: list[str]
) -> None:
    """A link opens the page at the operator, the cell or the case; an invalid link shows a message."""
    page = Page(browser, tmp_path, nasty_run(), fragment)
    assert page.text("#selection") == title
    assert page.texts("#detail h3") == detail
    assert browser.problems() == []


def test_an_operator_of_a_vendor_has_an_address_too(browser: Browser, tmp_path: Path) -> None:
    """The name may contain characters that an address has to escape."""
    page = Page(browser, tmp_path, run(result("acme::gelu %/value/float32", model.FAILED)))
    page.click("#rows td", "✗")
    assert page.text("#selection") == "acme::gelu %/float32: 1 case"
    assert page.run("return page.location.hash;") == "#acme::gelu%20%25/float32"


# Keyboard


def test_the_matrix_is_used_with_keys_alone(page: Page) -> None:
    """The matrix is one stop of the Tab key; arrows, Home and End move, Enter opens, and the focus is restored."""
    assert page.run("""return all('#rows [tabindex="0"]').map((e) => e.textContent);""") == ["device"]
    page.run("""find('#rows [tabindex="0"]').focus();""")
    for key in ("End", "ArrowUp", "ArrowUp", "Home", "ArrowDown", "ArrowRight", "ArrowRight"):
        page.press(key)
    assert page.run(
        """const e = page.document.activeElement; return [e.parentElement.cells[0].textContent, e.cellIndex];"""
    ) == [
        "control",
        2,
    ]
    page.press("Enter")
    assert page.text("#selection") == "control/float32: 1 case"
    assert page.run("return page.document.activeElement.className;") == "failed chosen"
    page.press("PageDown")
    assert page.run("return page.document.activeElement.parentElement.cells[0].textContent;") == "unicode"


def test_the_cases_are_walked_with_keys(page: Page) -> None:
    """The arrow keys show the previous and the next case."""
    page.run('page.location.hash = "#softmax/float16"; await until(() => all("#cases [data-case]").length === 9);')
    page.run("""find('#cases [tabindex="0"]').focus();""")
    page.press("Enter")
    assert page.text("#detail h3") == "softmax/crashed/float16"
    page.press("ArrowDown")
    assert page.text("#detail h3") == "softmax/timed out/float16"
    assert page.run("return page.document.activeElement.textContent;") == "∞ softmax/timed out/float16"
    assert page.texts('#cases [aria-selected="true"]') == ["∞ softmax/timed out/float16"]


# Many cases, and printing


def test_of_many_cases_only_the_visible_ones_are_in_the_document(browser: Browser, tmp_path: Path) -> None:
    """48,000 cases of 2,000 operators need a few thousand elements at any scroll position."""
    page = Page(browser, tmp_path, large_run(2000))
    assert page.shown() == "48,000 of 48,000 cases"
    assert page.run('return find("#matrix").getAttribute("aria-rowcount");') == "2001"
    assert page.run('return all("*").length;') < 3000
    page.run("""const s = find("#matrix-scroll"); s.scrollTop = s.scrollHeight;
        await until(() => all("#rows th").some((e) => e.textContent === "operator1999"));""")
    assert "operator0000" not in page.names()
    assert page.run('return all("*").length;') < 3000
    page.run("""const s = find("#list-scroll"); s.scrollTop = s.scrollHeight / 2;
        await until(() => Number(find("#cases [data-case]").dataset.case) > 10000);""")
    page.set("text", "operator1234/")
    assert page.names() == ["operator1234"]
    assert page.shown() == f"{len(DTYPES) * len(PROPERTIES)} of 48,000 cases"


def test_an_address_far_down_is_scrolled_to(browser: Browser, tmp_path: Path) -> None:
    """The row that a link names is visible."""
    page = Page(browser, tmp_path, large_run(500), "#operator0404/value/float16/contiguous")
    assert page.text("#detail .message") == "expected 1, got 404"
    assert page.run("""const head = all("#rows th").find((e) => e.textContent === "operator0404");
        const row = head.getBoundingClientRect(), seen = find("#matrix-scroll").getBoundingClientRect();
        return row.top >= seen.top && row.bottom <= seen.bottom;""")


def test_the_last_row_is_reached_by_key(browser: Browser, tmp_path: Path) -> None:
    """Rows that were not in the document can get the focus too."""
    page = Page(browser, tmp_path, large_run(300))
    page.run("""find('#rows [tabindex="0"]').focus();""")
    page.press("End")
    assert page.run("return page.document.activeElement.textContent;") == "operator0299"


def test_the_printed_page_has_the_whole_matrix_and_all_failures_in_full(browser: Browser, tmp_path: Path) -> None:
    """The printed page has all rows and all messages; afterwards the page is as before."""
    page = Page(browser, tmp_path, large_run(300))
    before = len(page.names())
    page.run('page.dispatchEvent(new page.Event("beforeprint"));')
    assert len(page.names()) == 300
    assert len(page.texts("#printed article")) == 60
    assert PROGRAM in page.texts("#printed .program")
    page.run('page.dispatchEvent(new page.Event("afterprint"));')
    assert len(page.names()) == before
    assert page.texts("#printed article") == []


def test_more_failures_than_fit_on_paper_are_counted(browser: Browser, tmp_path: Path) -> None:
    """200 failures are printed in full, followed by the number of the others."""
    page = Page(browser, tmp_path, large_run(1010))
    page.run('page.dispatchEvent(new page.Event("beforeprint"));')
    assert len(page.texts("#printed article")) == 200
    assert page.text("#printed > p") == "… and 2 more"


def test_an_empty_run_is_an_empty_page(browser: Browser, tmp_path: Path) -> None:
    """A run without cases is not an error."""
    page = Page(browser, tmp_path, run())
    assert page.shown() == "0 of 0 cases"
    assert browser.problems() == []
