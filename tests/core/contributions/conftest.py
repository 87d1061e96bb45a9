"""Fixtures of the tests of contributed kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from candelabra.library import add_contribution

from tests.core.contributions.contributed import Contributed, Make


@pytest.fixture(autouse=True)
def _only_what_the_test_contributes(owner_alone: None) -> None:
    """Remove the contributions of installed distributions."""


@pytest.fixture
def contribute() -> Iterator[Callable[..., Callable[[], None]]]:
    """Return a function that adds a contribution to ``cpu`` (or to ``device``), which the test's end removes."""
    undone: list[Callable[[], None]] = []

    def add(make: Make, name: str = "Acme_Fast", precedence: Any = 0, device: str = "cpu") -> Callable[[], None]:
        undone.append(add_contribution(device, Contributed(make, precedence), name))
        return undone[-1]

    yield add
    for undo in reversed(undone):
        undo()
