"""The public names of ``candelabra_conformance``."""

import subprocess
import sys

import candelabra_conformance
import pytest


def test_every_public_name_is_there() -> None:
    """All names of ``__all__`` are importable and listed by ``dir()``; no module hides a function of its name."""
    assert set(candelabra_conformance.__all__) == set(candelabra_conformance._MODULES)
    assert set(candelabra_conformance.__all__) <= set(dir(candelabra_conformance))
    for name in candelabra_conformance.__all__:
        assert callable(getattr(candelabra_conformance, name)), name


def test_unknown_names_raise_attribute_error() -> None:
    """An unknown name raises AttributeError, as in any module."""
    with pytest.raises(AttributeError, match="module 'candelabra_conformance' has no attribute 'nothing'"):
        _ = candelabra_conformance.nothing  # type: ignore[attr-defined]


def test_importing_the_package_imports_nothing_else() -> None:
    """Every run of pytest imports the package for the plugin, so its import must be cheap."""
    code = "import sys, candelabra_conformance; sys.exit('numpy' in sys.modules or 'candelabra' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
