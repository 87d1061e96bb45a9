"""The HTML report in a real browser: its content, its filters, and the result of clicks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from candelabra_conformance import model
from candelabra_conformance.report import write_html

from tests.conformance.browser import Browser
from tests.conformance.example_runs import NASTY, PROGRAM, large_run, nasty_run, result, run
from tests.conformance.report_page import Page


def test_the_page_opens_as_a_file_without_an_error(page: Page) -> None:
    """Problematic texts cause no error, no warning and no violation of the policy; the title is the run's."""
    assert page.browser.problems() == []
    assert page.text("head title") == "acme:0: candelabra conformance"
    assert page.run("return page.location.protocol;") == "file:"
    assert page.text("h1").startswith("acme:0")


def test_the_page_as_it_is_written_draws_its_matrix(browser: Browser, tmp_path: Path) -> None:
    """The other tests open a copy with a recorder before the policy; this test opens the file itself."""
    write_html(nasty_run(), tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    assert browser.run("return page.document.querySelectorAll('#rows td.failed').length;") > 0


def test_the_matrix_has_a_row_per_operator_and_a_column_per_dtype(page: Page) -> None:
    """The device is the first row, then the operators by name; dtypes have the usual order."""
    assert page.names() == ["device", *sorted(NASTY | {"gelu": "", "softmax": ""})]
    assert page.texts("#head th") == ["operator", "float16", "float32", "float64", "any"]


def test_a_cell_shows_the_worst_verdict_the_red_cases_and_the_route(page: Page) -> None:
    """A cell has a sign, a colour, and words for readers who see neither."""
    red = page.cell("softmax", "float16")
    assert (red["text"], red["class"], red["colour"]) == ("‼ 4", "crashed", "rgb(245, 163, 160)")
    assert red["title"] == "softmax, float16: crashed, 9 cases, 4 red"
    fallen = page.cell("gelu", "float64")
    assert (fallen["text"], fallen["class"], fallen["colour"]) == ("✓f", "passed", "rgb(205, 240, 211)")
    assert fallen["title"] == "gelu, float64: passed, 1 case, fallback"
    assert page.cell("softmax", "any")["title"] == "softmax, no dtype: blocked, 1 case"
    assert page.cell("script", "float32")["title"] == "script, float32: failed, 1 case, 1 red, native, nan ULP"
    assert page.cell("gelu", "float16")["text"] == ""


def test_every_verdict_can_be_read_in_both_themes(page: Page) -> None:
    """Text on each colour has a contrast of at least 4.5 to 1 (WCAG 2.2), dark and light, and the colours differ."""
    grounds = []
    for _ in range(2):
        colours = page.run("""return all("#legend span").map((e) => {
            const style = page.getComputedStyle(e); return [style.color, style.backgroundColor]; });""")
        assert len(colours) == len(model.VERDICTS)
        assert min(_contrast(*pair) for pair in colours) >= 4.5
        grounds.append([ground for _, ground in colours])
        page.run('find("#theme").click();')
    assert not set(grounds[0]) & set(grounds[1])
    assert all(
        len(set(found)) == 7 for found in grounds
    )  # Failed and unexpected pass share a colour, and so do the two severe verdicts.


def _contrast(ink: str, ground: str) -> float:
    """Return the contrast of two colours as ``rgb(1, 2, 3)``, by WCAG 2.2's relative luminance."""

    def luminance(colour: str) -> float:
        channels = [int(channel) / 255 for channel in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))

    light, dark = sorted((luminance(ink), luminance(ground)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_head_says_who_was_tested_and_what_came_out(page: Page) -> None:
    """Counts, facts and lists are plain text, readable without the script."""
    head = page.text("header")
    assert "ACME X1 <rev 2> — candelabra-acme 1.0 on candelabra 0.1.0, suite 0.1.0, held against host:0" in head
    assert "21 cases in 75 s: level none, level 3 is required." in head
    why = page.texts("#lists li")[0]
    assert why == "crashed device: 1 case of copy in float32, blocks 1 case: signal 11"
    assert page.texts("#counts button")[:3] == ["2 passed", "10 failed", "1 skipped"]
    assert "driver4.2" in page.text("#lists dl").replace("\n", "")
    kernel = "matmul (missing in float16, float32): 2 operators would run on the device: linear, bmm"
    assert kernel in page.texts("#lists li")
    assert NASTY["quotes"] in page.texts("#lists li")


# Filters


@pytest.mark.parametrize(
    ("control", "value", "names"),
    [
        ("text", "GELU", ["gelu"]),
        ("text", "signal 11", ["device"]),
        ("property", "inplace", ["operator0000", "operator0001", "operator0004"]),
        ("verdict", "failed", ["softmax", *sorted(NASTY), "gelu"]),
        ("verdict", "red: any failure", ["device", "softmax", *sorted(NASTY), "gelu"]),
        ("route", "fallback", ["gelu"]),
        ("level", "0", ["device"]),
        ("layout", "transposed", ["softmax"]),
    ],
)
def test_a_filter_hides_the_rows_without_a_case(
    browser: Browser, tmp_path: Path, control: str, value: str, names: list[str]
) -> None:
    """Each filter works alone, and the page shows the number of remaining cases."""
    extra = [r for r in large_run(5).results if r.case.operator in names]
    page = Page(browser, tmp_path, run(*nasty_run().results, *extra))
    page.set(control, value)
    assert page.names() == sorted(names, key=lambda name: (name != "device", name))
    assert re.fullmatch(rf"\d+ of {len(nasty_run().results) + len(extra)} cases", page.shown())


def test_filters_hold_together_and_are_cleared_together(page: Page) -> None:
    """A cell counts only the cases that pass all filters."""
    page.set("text", "softmax")
    page.set("verdict", "failed")
    assert page.shown() == "1 of 21 cases"
    assert page.cell("softmax", "float16")["title"] == "softmax, float16: failed, 1 case, 1 red"
    page.run("""find("button[type=reset]").click(); await until(() => find("#shown").textContent.startsWith("21 "));""")
    assert len(page.names()) == len(NASTY) + 3


def test_a_click_on_a_count_filters_by_its_verdict(page: Page) -> None:
    """A click on "2 crashed" shows the crashed cases."""
    page.click("#counts button", "crashed")
    assert page.names() == ["device", "softmax"]
    assert page.shown() == "2 of 21 cases"


def test_the_worst_operators_come_first_when_asked(page: Page) -> None:
    """Operators are sorted by verdict, then by name."""
    page.set("order", "worst first")
    assert page.names()[:3] == ["device", "softmax", "control"]
    assert page.names()[-1] == "unicode"


# Cases


def test_a_click_on_a_cell_lists_its_cases_and_a_click_on_a_case_its_reproducer(page: Page) -> None:
    """Three clicks lead from the matrix to a program that shows the failure, and the address changes with each."""
    page.click("#rows td.crashed", "‼ 4")
    assert page.run("return page.location.hash;") == "#softmax/float16"
    assert page.text("#selection") == "softmax/float16: 9 cases"
    cases = page.texts("#cases [data-case]")
    assert cases[0] == "‼ softmax/crashed/float16"
    assert cases[-1] == "· softmax/skipped/float16"
    page.click("#cases li", "softmax/failed/float16")
    assert page.run("return page.location.hash;") == "#softmax/failed/float16"
    assert page.text("#detail h3") == "softmax/failed/float16"
    assert page.text("#detail .message") == "because failed"
    assert page.text("#detail .program") == PROGRAM
    assert page.texts("#detail dt") == ["verdict", "level"]
    assert page.texts("#detail dd") == ["failed", "2"]


def test_a_click_on_an_operator_lists_all_of_its_cases(page: Page) -> None:
    """The row's header selects the whole row; a cell without a case cannot be clicked."""
    page.click("#rows th", "softmax")
    assert page.text("#selection") == "softmax: 10 cases"
    page.click("#rows tr:nth-child(3) td.empty")
    assert page.text("#selection") == "softmax: 10 cases"


def test_a_case_tells_all_that_is_known_of_it(browser: Browser, tmp_path: Path) -> None:
    """The page shows the route, the error, the blocking operators and the missing kernels."""
    facts = {"route": "fallback", "ulp": float("nan"), "blocked_by": "exp", "missing": ("exp", "sum"), "uses": ("max",)}
    page = Page(browser, tmp_path, run(result("softmax/value/float16", model.BLOCKED, 3, **facts)), "#softmax")
    assert dict(zip(page.texts("#detail dt"), page.texts("#detail dd"))) == {
        "verdict": "blocked",
        "level": "3",
        "route": "fallback",
        "largest error": "nan ULP",
        "blocked by": "exp",
        "without a kernel": "exp, sum",
        "operators used": "max",
    }


def test_the_button_copies_the_reproducer(page: Page) -> None:
    """The whole program is copied, and the button confirms it."""
    page.run('page.location.hash = "#softmax/failed/float16"; await until(() => find(".copy"));')
    copied = page.run("""let copied;
        const writeText = async (text) => { copied = text; };
        Object.defineProperty(page.navigator, "clipboard", { value: { writeText } });
        find(".copy").click();
        await until(() => find(".copy").textContent === "copied");
        return copied;""")
    assert copied == PROGRAM


def test_without_a_clipboard_the_button_copies_the_old_way(page: Page) -> None:
    """If the browser refuses the clipboard to a file, the page copies the selection of a hidden field."""
    page.run('page.location.hash = "#softmax/failed/float16"; await until(() => find(".copy"));')
    copied = page.run("""let copied;
        Object.defineProperty(page.navigator, "clipboard", { value: undefined });
        page.document.execCommand = (command) => { copied = [command, page.document.activeElement.value]; };
        find(".copy").click();
        await until(() => find(".copy").textContent === "copied");
        return [...copied, all("textarea").length];""")
    assert copied == ["copy", PROGRAM, 0]
