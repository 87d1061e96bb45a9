"""Fixtures of the tests of the reference device: its owner's kernels serve, whatever distributions contribute to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from candelabra.library import own_kernels


@pytest.fixture(autouse=True)
def _owner_serves() -> Iterator[None]:
    """Serve calls in the test by the owner's kernels."""
    with own_kernels():
        yield
