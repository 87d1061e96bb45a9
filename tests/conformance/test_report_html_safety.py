"""The HTML report in a real browser: texts of a run are escaped, and the page makes no network request."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from candelabra_conformance.report import to_html

from tests.conformance.browser import Browser
from tests.conformance.example_runs import NASTY, nasty_run, run, subject
from tests.conformance.report_page import Page


@pytest.mark.parametrize("name", NASTY)
def test_a_text_is_shown_as_it_is(browser: Browser, tmp_path: Path, name: str) -> None:
    """Every character of message and program is shown; nothing is interpreted as HTML or executed."""
    page = Page(browser, tmp_path, nasty_run(), f"#{name}/value/float32/contiguous")
    assert page.text("#detail .message") == NASTY[name]
    assert page.text("#detail .program") == NASTY[name]
    assert page.text("head title") == "acme:0: candelabra conformance"
    # These are the script of the recorder and the page's own.
    assert page.run('return all("img, script:not([type])").length;') == 2
    assert browser.problems() == []


def test_the_page_makes_no_network_request(tmp_path: Path) -> None:
    """The browser's log has no request of the page or its texts, and has those of a page that makes requests."""
    (tmp_path / "asks").mkdir()
    asking = Browser(tmp_path / "asks")
    (tmp_path / "asks.html").write_text('<head></head><img src="http://127.0.0.1:9/seen">', encoding="utf-8")
    asking.open(tmp_path / "asks.html")
    assert "http://127.0.0.1:9/seen" in asking.close()
    (tmp_path / "report").mkdir()
    silent = Browser(tmp_path / "report")
    page = Page(silent, tmp_path, nasty_run())
    for name in NASTY:
        page.run("page.location.hash = variables.to; await until(() => find('#detail .program'));", to=f"#{name}")
    assert silent.close() == []


def test_the_policy_stops_what_is_smuggled_in(browser: Browser, tmp_path: Path) -> None:
    """If a text became HTML, neither its script nor its image would be loaded."""
    text = to_html(nasty_run()).replace(
        "</body>", '<script>window.owned = 1</script><img src="http://127.0.0.1:9/x"></body>'
    )
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    browser.open_recorded(tmp_path / "page.html")
    assert browser.run("return page.owned ?? null;") is None
    problems = browser.problems()
    assert "policy inline" in problems
    assert "policy http://127.0.0.1:9/x" in problems


def test_texts_that_look_like_places_of_the_template_are_left_alone() -> None:
    """A text that looks like a placeholder is not replaced, and half a surrogate pair does not prevent writing the
    file."""
    text = to_html(run(subject=subject(description="{{script}} \ud800")))
    assert "{{script}} \\ud800 — candelabra-acme" in text
    assert text.count("const data = JSON.parse") == 1
    assert not re.findall(r"\{\{\w+\}\}", text.replace("{{script}}", ""))
