"""Fixtures of the conformance tests: a device with replaceable kernels, a browser, and the removal of fake devices."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from candelabra._device import forget_instances
from candelabra.library import plugins
from candelabra_conformance.fake.installing import provided

from tests.conformance.broken_device import Break, breakable
from tests.conformance.browser import Browser
from tests.conformance.example_runs import nasty_run
from tests.conformance.report_page import Page


@pytest.fixture(autouse=True)
def _remove_fakes() -> Iterator[None]:
    """Uninstall the fake devices that ``provide`` installed during a test, for example through a command line."""
    yield
    while provided:
        provided.popitem()[1].remove()


@pytest.fixture
def odd_is_removed() -> Iterator[None]:
    """Remove the backend that a setup adds in this process."""
    yield
    table = plugins._table()
    table.pop("odd", None)
    forget_instances("odd")


@pytest.fixture
def broken() -> Iterator[Break]:
    """Install a correct device ``broken``; ``broken(operator=fault)`` replaces a kernel by ``fault(kernel)``."""
    with breakable() as install:
        yield install


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Return one browser per module: it starts in a fraction of a second, and every test opens its own page."""
    made = Browser(tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


@pytest.fixture
def page(browser: Browser, tmp_path: Path) -> Page:
    """Open the HTML report of a run with every verdict and every problematic text."""
    return Page(browser, tmp_path, nasty_run())
