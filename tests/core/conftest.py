"""Fixtures of the core's tests."""

from pathlib import Path

import pytest

from tests.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """Return an empty folder of fake distributions."""
    return Site(tmp_path)
