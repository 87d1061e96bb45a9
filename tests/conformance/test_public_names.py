"""What ``import candelabra_conformance`` offers."""

import subprocess
import sys

import candelabra_conformance
import pytest


def test_every_public_name_is_there() -> None:
    """All of ``__all__`` can be had, and is listed; no module hides a function of its name."""
    assert set(candelabra_conformance.__all__) == set(candelabra_conformance._MODULES)
    assert set(candelabra_conformance.__all__) <= set(dir(candelabra_conformance))
    for name in candelabra_conformance.__all__:
        assert callable(getattr(candelabra_conformance, name)), name


def test_unknown_names_are_told() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="module 'candelabra_conformance' has no attribute 'nothing'"):
        _ = candelabra_conformance.nothing  # type: ignore[attr-defined]


def test_importing_the_package_imports_nothing_else() -> None:
    """Every run of pytest imports it for the plugin, whether it is used or not."""
    code = "import sys, candelabra_conformance; sys.exit('numpy' in sys.modules or 'candelabra' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
