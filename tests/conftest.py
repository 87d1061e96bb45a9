"""Fixtures of all tests: random numbers per test, two unusual devices, and a machine with the host's device alone."""

from __future__ import annotations

import gc
import os
import zlib
from collections.abc import Iterator

import candelabra as cd
import hypothesis
import numpy as np
import pytest
from candelabra._dispatch import fallback
from candelabra._keys import state, switch
from candelabra._plugins import contributed_kernels, registry

from tests.lantern import EmberBackend, LanternBackend

SALT = os.environ.get("CANDELABRA_TEST_SALT", "")
"""Changes the random numbers of every test: if a test's verdict depends on it, the test or its bound is wrong."""

# Kernels of the device cpu that the checkout's list lacks stay with NumPy: to compile one takes longer than most tests.
# Tests of compiled kernels allow it.
os.environ.setdefault("CANDELABRA_COMPILE", "0")

# Examples depend on the test alone (unless salted), and a slow machine is not a failure.
hypothesis.settings.register_profile("repeatable", derandomize=not SALT, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that find tests with hidden dependencies."""
    parser.addoption("--shuffle", metavar="SEED", help="run the modules, and the tests in each, in another order")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the tests as ``--shuffle`` requests. Tests of a module stay together because of its shared fixtures."""
    order = config.getoption("shuffle")
    if order is not None:
        items.sort(key=lambda item: [_hash(f"{order}{name}") for name in (item.nodeid.partition("::")[0], item.nodeid)])


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Hide the tests themselves from the garbage collector: 22,000 of them cost each full collection 0.3 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _garbage_is_collected_by_module() -> Iterator[None]:
    """Hide what a module has left in memory, such as compiled kernels, from later collections, which it slows down."""
    yield
    gc.collect()
    gc.freeze()


def _hash(name: str) -> int:
    return zlib.crc32(name.encode())


def seed(request: pytest.FixtureRequest) -> int:
    """Return a number that depends only on the test's id: not on the order of tests, nor on the workers."""
    return _hash(f"{SALT}{request.node.nodeid}")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Return a random number generator for this test alone."""
    return np.random.default_rng(seed(request))


@pytest.fixture(autouse=True)
def _modes_are_restored() -> Iterator[None]:
    """Leave the modes that a test enters, for example by running a reproducer, which is a program of its own."""
    before = state.bits
    yield
    if state.bits != before:
        switch(before)


@pytest.fixture(autouse=True)
def _default_generators_are_seeded(request: pytest.FixtureRequest) -> None:
    """Seed the default generators of all devices, so that a test draws the same numbers in any order."""
    cd.manual_seed(seed(request))


@pytest.fixture
def host_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide, for one test, every installed device type except the host's."""
    host = registry.reference_device().type
    table = registry._table()
    for name in set(table) - {host}:
        monkeypatch.delitem(table, name)


@pytest.fixture
def lantern() -> Iterator[LanternBackend]:
    """Install the device types ``lantern`` (two devices) and ``ember`` (immutable arrays) for one test."""
    made = LanternBackend()
    removals = [registry.add_backend(made), registry.add_backend(EmberBackend())]
    fallback.counts.clear()
    fallback._warned.clear()
    yield made
    for remove in reversed(removals):
        remove()
    fallback.counts.clear()
    fallback._warned.clear()


@pytest.fixture
def owner_alone() -> Iterator[None]:
    """Serve the device ``cpu`` by its owner's kernels, whatever distributions contribute to it here."""
    registry.backend("cpu")
    owner = registry.plugins()["cpu"]
    kept = list(owner.contributions)
    owner.contributions.clear()
    contributed_kernels.build_table(owner)
    yield
    owner.contributions[:] = kept
    contributed_kernels.build_table(owner)
