"""What all tests share: random numbers of their own, two unlike devices, and a machine with the host's device alone."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator

import candelabra as cd
import hypothesis
import numpy as np
import pytest
from candelabra._dispatch import fallback
from candelabra._plugins import registry

from tests.lantern import EmberBackend, LanternBackend

SALT = os.environ.get("CANDELABRA_TEST_SALT", "")
"""Gives every test other random numbers: a test whose verdict depends on it is wrong, or its bound is."""

# Examples follow from the test alone (unless salted), and a slow machine is no failure.
hypothesis.settings.register_profile("repeatable", derandomize=not SALT, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    """An option to find tests that depend on others."""
    parser.addoption("--shuffle", metavar="SEED", help="run the modules, and the tests in each, in another order")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests in the order that ``--shuffle`` asks for. Those of a module stay together, for what they share."""
    order = config.getoption("shuffle")
    if order is not None:
        items.sort(key=lambda item: [_hash(f"{order}{name}") for name in (item.nodeid.partition("::")[0], item.nodeid)])


def _hash(name: str) -> int:
    return zlib.crc32(name.encode())


def seed(request: pytest.FixtureRequest) -> int:
    """A number that depends on the test's id and on nothing else: not on the order of tests, not on the workers."""
    return _hash(f"{SALT}{request.node.nodeid}")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers of this test alone."""
    return np.random.default_rng(seed(request))


@pytest.fixture(autouse=True)
def _default_generators_are_seeded(request: pytest.FixtureRequest) -> None:
    """A test that draws from a device's default generator draws the same in any order."""
    cd.manual_seed(seed(request))


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
