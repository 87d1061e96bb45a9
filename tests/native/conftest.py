"""Fixtures: native kernels that serve calls of every size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _compiler_allowed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Allow kernels that the checkout's pack does not have to be compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CANDELABRA_COMPILE", "1")
        yield
