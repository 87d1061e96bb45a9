"""The HTML report in the browser, as tests use it: what a reader sees and does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from candelabra_conformance.model import Run
from candelabra_conformance.report import write_html

from tests.conformance.browser import Browser


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
