"""What the suite's own tests share: a device to break, a browser, and no fake device that outlives its test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from candelabra_conformance.fake.installing import provided

from tests.conformance.broken_device import Break, breakable
from tests.conformance.browser import Browser
from tests.conformance.made_runs import nasty_run
from tests.conformance.report_page import Page


@pytest.fixture(autouse=True)
def _fakes_go() -> Iterator[None]:
    """Take away what ``provide`` installed: a fake device that a command line asked for is gone after the test."""
    yield
    while provided:
        provided.popitem()[1].remove()


@pytest.fixture
def broken() -> Iterator[Break]:
    """A device ``broken``, correct until ``broken(operator=fault)`` puts ``fault(kernel)`` in a kernel's place."""
    with breakable() as install:
        yield install


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for a module: it starts in a fraction of a second, and a page is its own."""
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Page:
    """The HTML report of every verdict and every nasty text."""
    return Page(browser, tmp_path, nasty_run())
