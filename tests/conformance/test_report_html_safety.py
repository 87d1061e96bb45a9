"""The HTML report in a real browser: no text of a run gets anywhere, and nothing is asked of the network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from candelabra_conformance.report import to_html

from tests.conformance.browser import Browser
from tests.conformance.made_runs import NASTY, nasty_run, run, subject
from tests.conformance.report_page import Page


@pytest.mark.parametrize("name", NASTY)
def test_a_text_is_shown_as_it_is(browser: Browser, tmp_path: Path, name: str) -> None:
    """Every character of message and program, none of it read as HTML, none of it run."""
    page = Page(browser, tmp_path, nasty_run(), f"#{name}/value/float32/contiguous")
    assert page.text("#detail .message") == NASTY[name]
    assert page.text("#detail .program") == NASTY[name]
    assert page.text("head title") == "acme:0: candelabra conformance"
    assert page.run('return all("img, script:not([type])").length;') == 2  # the recorder's, and the page's own
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
