"""The HTML report in the browser, operated as a reader operates it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from candelabra_conformance.model import Run
from candelabra_conformance.report import write_html

from tests.conformance.browser import Browser


class Page:
    """The report of a run, open in the browser."""

    def __init__(self, browser: Browser, folder: Path, report: Run, fragment: str = "") -> None:
        self.browser, self.path = browser, folder / "report.html"
        write_html(report, self.path)
        browser.open_recorded(self.path, fragment)

    def run(self, script: str, **variables: Any) -> Any:
        prelude = (
            "const find = (q) => page.document.querySelector(q), all = (q) => [...page.document.querySelectorAll(q)];"
        )
        return self.browser.run(prelude + script, **variables)

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.run("return all(variables.q).map((e) => e.textContent);", q=selector)
        return found

    def text(self, selector: str) -> str:
        (found,) = self.texts(selector)
        return found

    def names(self) -> list[str]:
        """Return the operators whose rows are in the document."""
        return self.texts("#rows th")

    def cell(self, operator: str, dtype: str) -> dict[str, str]:
        """Return text, class, colour and accessible name of a cell of the matrix."""
        found: dict[str, str] = self.run(
            """const column = all("#head th").findIndex((e) => e.textContent === variables.dtype);
            const cell = all("#rows tr").find((e) => e.cells[0]?.textContent === variables.operator).cells[column];
            return { text: cell.textContent, class: cell.className, title: cell.getAttribute("aria-label"),
                     colour: page.getComputedStyle(cell).backgroundColor };""",
            operator=operator,
            dtype=dtype,
        )
        return found

    def set(self, control: str, value: str) -> None:
        """Type into a field, or choose the entry of a list by its text."""
        self.run(
            """const control = page.document.getElementById(variables.control);
            const chosen = [...(control.options ?? [])].find((option) => option.text === variables.value);
            control.value = chosen ? chosen.value : variables.value;
            control.dispatchEvent(new page.Event("input", { bubbles: true }));""",
            control=control,
            value=value,
        )

    def click(self, selector: str, text: str = "") -> None:
        """Click the first matching element that contains `text`, and wait until the page has followed the address."""
        self.run(
            """const before = page.location.href;
            const element = all(variables.q).find((e) => e.textContent.includes(variables.text));
            const followed = new Promise((done) => page.addEventListener("hashchange", done, { once: true }));
            element.click();
            if (page.location.href !== before) await followed;""",
            q=selector,
            text=text,
        )

    def press(self, key: str) -> None:
        """Press a key in the element that has the focus."""
        self.run(
            """const before = page.location.href;
            const event = new page.KeyboardEvent("keydown", { key: variables.key, bubbles: true });
            const followed = new Promise((done) => page.addEventListener("hashchange", done, { once: true }));
            page.document.activeElement.dispatchEvent(event);
            if (page.location.href !== before) await followed;""",
            key=key,
        )

    def shown(self) -> str:
        return self.text("#shown")
