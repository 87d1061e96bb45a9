"""Fixtures of these tests."""

import pytest


@pytest.fixture(autouse=True)
def _single_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the core run all graphs, with the kernels of eager calls, so that results are equal bit for bit."""
    monkeypatch.setenv("CANDELABRA_COMPILE", "0")
