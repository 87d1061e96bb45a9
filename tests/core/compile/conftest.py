"""What several tests of compiled functions use."""

from __future__ import annotations

from collections.abc import Iterator

import candelabra as cd
import pytest
from candelabra.library import plugins
from candelabra_conformance.fake import FakeAccelerator


@pytest.fixture
def counting() -> Iterator[cd.device]:
    """Install a device that counts its memory and runs each kernel at once; the core runs its graphs."""
    remove = plugins.add_backend(FakeAccelerator("counting", asynchronous=False))
    yield cd.device("counting")
    remove()
