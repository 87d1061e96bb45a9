"""Fixtures of the tests of native kernels."""

from __future__ import annotations

import pytest
from candelabra_native.engine import ENGINE


@pytest.fixture(autouse=True)
def _compiler_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow kernels that the checkout's pack does not have to be compiled, also those that earlier tests lacked."""
    monkeypatch.setenv("CANDELABRA_COMPILE", "1")
    ENGINE.forget_missing()
