"""Whether compiled kernels serve: there must be some for this processor, and the extension module that runs them."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from candelabra.errors import DeviceUnavailable
from candelabra_native import finding, plugin, processor, why_unavailable
from candelabra_native.pack import libraries


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Give a processor of level 3 its pack and no compiler."""
    monkeypatch.setattr(processor, "levels", lambda: ("x86_64_v3",))
    monkeypatch.setattr(libraries, "built", lambda: ["x86_64_v3"])
    monkeypatch.setattr(finding, "may_compile", lambda: False)
    monkeypatch.setattr(importlib, "import_module", lambda name: None)
    return monkeypatch


def test_a_wheel_serves(complete: pytest.MonkeyPatch) -> None:
    """A processor of a higher level uses the kernels of a lower one, too."""
    assert why_unavailable() == ""
    complete.setattr(processor, "levels", lambda: ("x86_64_v4", "x86_64_v3"))
    assert why_unavailable() == ""


def test_an_older_processor_has_no_kernels(complete: pytest.MonkeyPatch) -> None:
    """The contribution says why, and the owner's kernels serve."""
    complete.setattr(processor, "levels", lambda: ())
    with pytest.raises(DeviceUnavailable, match="there are no kernels for this processor"):
        plugin.candelabra_kernels("cpu", {}, False)


def test_a_checkout_without_a_compiler_has_no_extension_module(complete: pytest.MonkeyPatch) -> None:
    """Importing the module fails there."""

    def missing(name: str) -> Any:
        raise ImportError(f"no module {name}")

    complete.setattr(importlib, "import_module", missing)
    assert why_unavailable().startswith(
        "its extension module is not built (no module candelabra_native.launch._launch)"
    )


def test_without_a_pack_a_compiler_is_needed(complete: pytest.MonkeyPatch) -> None:
    """Otherwise every call would search for a kernel that does not exist."""
    complete.setattr(libraries, "built", lambda: ["aarch64"])
    assert why_unavailable().startswith("it has no kernels")
    complete.setattr(finding, "may_compile", lambda: True)
    assert why_unavailable() == ""
