"""What all tests share: the two unlike devices of ``tests/lantern``."""

from collections.abc import Iterator

import pytest
from candelabra.dispatch import fallback
from candelabra.plugins import registry

from tests.lantern import EmberBackend, LanternBackend


@pytest.fixture
def lantern() -> Iterator[LanternBackend]:
    """The device type ``lantern`` (two devices) and ``ember`` (immutable arrays), installed for one test."""
    made = LanternBackend()
    removals = [registry.add_backend(made), registry.add_backend(EmberBackend())]
    fallback.counts.clear()
    fallback._warned.clear()
    yield made
    for remove in reversed(removals):
        remove()
    fallback.counts.clear()
    fallback._warned.clear()
