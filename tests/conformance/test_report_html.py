"""The HTML report in a real browser, opened as a file: what it shows, hides, and never asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from candelabra_conformance import model
from candelabra_conformance.model import Run
from candelabra_conformance.report import to_html, write_html

from tests.conformance.browser import Browser
from tests.conformance.made_runs import DTYPES, NASTY, PROGRAM, PROPERTIES, large_run, nasty_run, result, run, subject


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for the module: it starts in a fraction of a second, and a page is its own."""
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


class Page:
    """The report of a run, open in the browser: what a reader sees and does."""

    def __init__(self, browser: Browser, folder: Path, made: Run, fragment: str = "") -> None:
        self.browser, self.path = browser, folder / "report.html"
        write_html(made, self.path)
        browser.open_recorded(self.path, fragment)

    def run(self, script: str, **given: Any) -> Any:
        prelude = (
            "const find = (q) => page.document.querySelector(q), all = (q) => [...page.document.querySelectorAll(q)];"
        )
        return self.browser.run(prelude + script, **given)

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.run("return all(given.q).map((e) => e.textContent);", q=selector)
        return found

    def text(self, selector: str) -> str:
        (found,) = self.texts(selector)
        return found

    def names(self) -> list[str]:
        """The operators whose rows are in the document."""
        return self.texts("#rows th")

    def cell(self, operator: str, dtype: str) -> dict[str, str]:
        """Text, class, colour and spoken name of a cell of the matrix."""
        found: dict[str, str] = self.run(
            """const column = all("#head th").findIndex((e) => e.textContent === given.dtype);
            const cell = all("#rows tr").find((e) => e.cells[0]?.textContent === given.operator).cells[column];
            return { text: cell.textContent, class: cell.className, title: cell.getAttribute("aria-label"),
                     colour: page.getComputedStyle(cell).backgroundColor };""",
            operator=operator,
            dtype=dtype,
        )
        return found

    def set(self, control: str, value: str) -> None:
        """Type into a field, or choose the entry of a list that reads so."""
        self.run(
            """const control = page.document.getElementById(given.control);
            const chosen = [...(control.options ?? [])].find((option) => option.text === given.value);
            control.value = chosen ? chosen.value : given.value;
            control.dispatchEvent(new page.Event("input", { bubbles: true }));""",
            control=control,
            value=value,
        )

    def click(self, selector: str, text: str = "") -> None:
        """Click the first element there that holds `text`, and wait until the page has followed the address."""
        self.run(
            """const before = page.location.href;
            const element = all(given.q).find((e) => e.textContent.includes(given.text));
            const followed = new Promise((done) => page.addEventListener("hashchange", done, { once: true }));
            element.click();
            if (page.location.href !== before) await followed;""",
            q=selector,
            text=text,
        )

    def press(self, key: str) -> None:
        """Press a key where the focus is."""
        self.run(
            """const before = page.location.href;
            const event = new page.KeyboardEvent("keydown", { key: given.key, bubbles: true });
            const followed = new Promise((done) => page.addEventListener("hashchange", done, { once: true }));
            page.document.activeElement.dispatchEvent(event);
            if (page.location.href !== before) await followed;""",
            key=key,
        )

    def shown(self) -> str:
        return self.text("#shown")


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Page:
    """The report of every verdict and every nasty text."""
    return Page(browser, tmp_path, nasty_run())


def test_the_page_opens_as_a_file_without_a_complaint(page: Page) -> None:
    """No error, no warning, no violation of its own policy, whatever the run's texts hold; the title is the run's."""
    assert page.browser.complaints() == []
    assert page.text("head title") == "acme:0: candelabra conformance"
    assert page.run("return page.location.protocol;") == "file:"
    assert page.text("h1").startswith("acme:0")


def test_the_page_as_it_is_written_draws_its_matrix(browser: Browser, tmp_path: Path) -> None:
    """The other tests open a copy with a recorder before the policy; this is the file itself."""
    write_html(nasty_run(), tmp_path / "report.html")
    browser.open(tmp_path / "report.html")
    assert browser.run("return page.document.querySelectorAll('#rows td.failed').length;") > 0


def test_the_matrix_has_a_row_per_operator_and_a_column_per_dtype(page: Page) -> None:
    """The device stands first, then the operators by name; dtypes in the usual order."""
    assert page.names() == ["device", *sorted(NASTY | {"gelu": "", "softmax": ""})]
    assert page.texts("#head th") == ["operator", "float16", "float32", "float64", "any"]


def test_a_cell_shows_the_worst_verdict_the_red_cases_and_the_route(page: Page) -> None:
    """As a sign, as a colour, and in words for those who see neither."""
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
    )  # failed and unexpected pass share one, as do the two hard ones


def _contrast(ink: str, ground: str) -> float:
    """Of two colours as ``rgb(1, 2, 3)``, by WCAG 2.2's relative luminance."""

    def luminance(colour: str) -> float:
        channels = [int(channel) / 255 for channel in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear))

    light, dark = sorted((luminance(ink), luminance(ground)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_the_head_says_who_was_tested_and_what_came_out(page: Page) -> None:
    """Counts, facts and lists are plain text, readable without the script."""
    assert "ACME X1 <rev 2> — candelabra-acme 1.0. 21 cases in 75 s: level none." in page.text("header")
    assert page.texts("#counts button")[:3] == ["2 passed", "10 failed", "1 skipped"]
    assert "driver4.2" in page.text("#lists dl").replace("\n", "")
    assert "matmul unlocks 2: linear, bmm" in page.texts("#lists li")
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
    """Each filter by itself; the number of cases that are left is told."""
    extra = [r for r in large_run(5).results if r.case.operator in names]
    page = Page(browser, tmp_path, run(*nasty_run().results, *extra))
    page.set(control, value)
    assert page.names() == sorted(names, key=lambda name: (name != "device", name))
    assert re.fullmatch(rf"\d+ of {len(nasty_run().results) + len(extra)} cases", page.shown())


def test_filters_hold_together_and_are_cleared_together(page: Page) -> None:
    """A cell counts only the cases that pass all of them."""
    page.set("text", "softmax")
    page.set("verdict", "failed")
    assert page.shown() == "1 of 21 cases"
    assert page.cell("softmax", "float16")["title"] == "softmax, float16: failed, 1 case, 1 red"
    page.run("""find("button[type=reset]").click(); await until(() => find("#shown").textContent.startsWith("21 "));""")
    assert len(page.names()) == len(NASTY) + 3


def test_a_click_on_a_count_filters_by_its_verdict(page: Page) -> None:
    """From "2 crashed" to what crashed in one step."""
    page.click("#counts button", "crashed")
    assert page.names() == ["device", "softmax"]
    assert page.shown() == "2 of 21 cases"


def test_the_worst_operators_come_first_when_asked(page: Page) -> None:
    """The order is that of the verdicts, then of the names."""
    page.set("order", "worst first")
    assert page.names()[:3] == ["device", "softmax", "control"]
    assert page.names()[-1] == "unicode"


# Cases


def test_a_click_on_a_cell_lists_its_cases_and_a_click_on_a_case_its_reproducer(page: Page) -> None:
    """Three clicks from the matrix to a program that shows the failure; the address follows."""
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
    """The row's head stands for the whole row; a cell without a case for nothing."""
    page.click("#rows th", "softmax")
    assert page.text("#selection") == "softmax: 10 cases"
    page.click("#rows tr:nth-child(3) td.empty")
    assert page.text("#selection") == "softmax: 10 cases"


@pytest.mark.parametrize("name", NASTY)
def test_a_text_is_shown_as_it_is(browser: Browser, tmp_path: Path, name: str) -> None:
    """Every character of message and program, none of it read as HTML, none of it run."""
    page = Page(browser, tmp_path, nasty_run(), f"#{name}/value/float32/contiguous")
    assert page.text("#detail .message") == NASTY[name]
    assert page.text("#detail .program") == NASTY[name]
    assert page.text("head title") == "acme:0: candelabra conformance"
    assert page.run('return all("img, script:not([type])").length;') == 2  # the recorder's, and the page's own
    assert browser.complaints() == []


def test_a_case_tells_all_that_is_known_of_it(browser: Browser, tmp_path: Path) -> None:
    """Route, error, what blocks it, which kernels it lacks."""
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
    """The whole program, and the button says that it did."""
    page.run('page.location.hash = "#softmax/failed/float16"; await until(() => find(".copy"));')
    copied = page.run("""let copied;
        const writeText = async (text) => { copied = text; };
        Object.defineProperty(page.navigator, "clipboard", { value: { writeText } });
        find(".copy").click();
        await until(() => find(".copy").textContent === "copied");
        return copied;""")
    assert copied == PROGRAM


def test_without_a_clipboard_the_button_copies_the_old_way(page: Page) -> None:
    """A browser may refuse the clipboard to a file; the selection of a hidden field is copied instead."""
    page.run('page.location.hash = "#softmax/failed/float16"; await until(() => find(".copy"));')
    copied = page.run("""let copied;
        Object.defineProperty(page.navigator, "clipboard", { value: undefined });
        page.document.execCommand = (command) => { copied = [command, page.document.activeElement.value]; };
        find(".copy").click();
        await until(() => find(".copy").textContent === "copied");
        return [...copied, all("textarea").length];""")
    assert copied == ["copy", PROGRAM, 0]


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
    """A link in an issue opens the page at the operator, the cell or the case; one that leads nowhere says so."""
    page = Page(browser, tmp_path, nasty_run(), fragment)
    assert page.text("#selection") == title
    assert page.texts("#detail h3") == detail
    assert browser.complaints() == []


def test_an_operator_of_a_vendor_has_an_address_too(browser: Browser, tmp_path: Path) -> None:
    """Its name may hold what an address has to escape."""
    page = Page(browser, tmp_path, run(result("acme::gelu %/value/float32", model.FAILED)))
    page.click("#rows td", "✗")
    assert page.text("#selection") == "acme::gelu %/float32: 1 case"
    assert page.run("return page.location.hash;") == "#acme::gelu%20%25/float32"


# Keys


def test_the_matrix_is_used_with_keys_alone(page: Page) -> None:
    """One stop of the Tab key; arrows, Home and End move; Enter opens; the focus stays where it was."""
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
    """Arrows show one case after the other."""
    page.run('page.location.hash = "#softmax/float16"; await until(() => all("#cases [data-case]").length === 9);')
    page.run("""find('#cases [tabindex="0"]').focus();""")
    page.press("Enter")
    assert page.text("#detail h3") == "softmax/crashed/float16"
    page.press("ArrowDown")
    assert page.text("#detail h3") == "softmax/timed out/float16"
    assert page.run("return page.document.activeElement.textContent;") == "∞ softmax/timed out/float16"
    assert page.texts('#cases [aria-selected="true"]') == ["∞ softmax/timed out/float16"]


# Many cases, paper, network


def test_of_many_cases_only_what_is_seen_is_in_the_document(browser: Browser, tmp_path: Path) -> None:
    """48,000 cases of 2,000 operators cost a few thousand elements, wherever one scrolls to."""
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
    """The row that a link names is in sight."""
    page = Page(browser, tmp_path, large_run(500), "#operator0404/value/float16/contiguous")
    assert page.text("#detail .message") == "expected 1, got 404"
    assert page.run("""const head = all("#rows th").find((e) => e.textContent === "operator0404");
        const row = head.getBoundingClientRect(), seen = find("#matrix-scroll").getBoundingClientRect();
        return row.top >= seen.top && row.bottom <= seen.bottom;""")


def test_the_last_row_is_reached_by_key(browser: Browser, tmp_path: Path) -> None:
    """Rows that were not in the document get the focus all the same."""
    page = Page(browser, tmp_path, large_run(300))
    page.run("""find('#rows [tabindex="0"]').focus();""")
    page.press("End")
    assert page.run("return page.document.activeElement.textContent;") == "operator0299"


def test_on_paper_the_matrix_is_whole_and_failures_are_told_in_full(browser: Browser, tmp_path: Path) -> None:
    """Nobody can scroll on paper; afterwards the page is as before."""
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
    """200 in full, and how many there are besides."""
    page = Page(browser, tmp_path, large_run(1010))
    page.run('page.dispatchEvent(new page.Event("beforeprint"));')
    assert len(page.texts("#printed article")) == 200
    assert page.text("#printed > p") == "… and 2 more"


def test_an_empty_run_is_an_empty_page(browser: Browser, tmp_path: Path) -> None:
    """No case is no reason to fail."""
    page = Page(browser, tmp_path, run())
    assert page.shown() == "0 of 0 cases"
    assert browser.complaints() == []


def test_nothing_is_asked_of_the_network(tmp_path: Path) -> None:
    """Neither by the page nor by any text in it, as the browser's own log shows; a page that does ask is in it."""
    (tmp_path / "asks").mkdir()
    asking = Browser(tmp_path / "asks")
    (tmp_path / "asks.html").write_text('<head></head><img src="http://127.0.0.1:9/seen">', encoding="utf-8")
    asking.open(tmp_path / "asks.html")
    assert "http://127.0.0.1:9/seen" in asking.close()
    (tmp_path / "report").mkdir()
    silent = Browser(tmp_path / "report")
    page = Page(silent, tmp_path, nasty_run())
    for name in NASTY:
        page.run("page.location.hash = given.to; await until(() => find('#detail .program'));", to=f"#{name}")
    assert silent.close() == []


def test_the_policy_stops_what_is_smuggled_in(browser: Browser, tmp_path: Path) -> None:
    """Were a text ever to end up as HTML, neither its script nor its image would do anything."""
    text = to_html(nasty_run()).replace(
        "</body>", '<script>window.owned = 1</script><img src="http://127.0.0.1:9/x"></body>'
    )
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    browser.open_recorded(tmp_path / "page.html")
    assert browser.run("return page.owned ?? null;") is None
    complaints = browser.complaints()
    assert "policy inline" in complaints
    assert "policy http://127.0.0.1:9/x" in complaints


def test_texts_that_look_like_places_of_the_template_are_left_alone() -> None:
    """What is filled in is not filled in again; half a surrogate pair does not stop the file from being written."""
    text = to_html(run(subject=subject(description="{{script}} \ud800")))
    assert "{{script}} \\ud800 — candelabra-acme" in text
    assert text.count("const data = JSON.parse") == 1
    assert not re.findall(r"\{\{\w+\}\}", text.replace("{{script}}", ""))
