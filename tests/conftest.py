"""What all tests share: the two unlike devices of ``tests/lantern``, and a machine with the host's device alone."""

from collections.abc import Iterator

import pytest
from candelabra._dispatch import fallback
from candelabra._plugins import registry

from tests.lantern import EmberBackend, LanternBackend


@pytest.fixture
def host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide, for one test, every installed device type but the host's, whatever this environment has."""
    host = registry.reference_device().type
    table = registry._table()
    for name in set(table) - {host}:
        monkeypatch.delitem(table, name)


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
