"""What the suite's own tests share: a fake device that a command line asked for is gone after the test."""

from collections.abc import Iterator

import pytest
from candelabra_conformance.fake.installing import provided


@pytest.fixture(autouse=True)
def _fakes_go() -> Iterator[None]:
    """Take away what ``provide`` installed."""
    yield
    while provided:
        provided.popitem()[1].remove()
