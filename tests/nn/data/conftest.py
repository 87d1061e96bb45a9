"""A limit of time for every test of the loader: a test that hangs fails, with the place where it waits."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from candelabra.library import open_instances
from candelabra.utils.data._utils import worker_pool

LIMIT_S = 120
"""Far beyond what any of these tests takes; no verdict depends on it unless something hangs."""


@pytest.fixture(autouse=True)
def _time_limit() -> Iterator[None]:
    def fail(*_: Any) -> None:
        pytest.fail(f"the test did not end in {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def _any_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaders of two workers cause no warning on a machine with one core."""
    monkeypatch.setattr("candelabra.utils.data.dataloader.DataLoader.check_worker_number_rationality", lambda _: None)


@pytest.fixture(autouse=True)
def _devices_of_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that an earlier test has used does not decide how this test's workers start."""
    earlier = open_instances()
    monkeypatch.setattr(worker_pool, "open_instances", lambda: [one for one in open_instances() if one not in earlier])


@pytest.fixture(autouse=True)
def _libraries_of_other_tests() -> Iterator[None]:
    """JAX, once another test has imported it, warns of every fork. The workers of these tests do not use it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"os\.fork\(\) was called", RuntimeWarning)
        yield
