"""Test any candelabra backend against the reference, and check programs and operators of users.

The public functions are here and are imported at their first use: pytest imports this package for its plugin in every
run.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from candelabra_conformance.closeness import assert_close
    from candelabra_conformance.opchecking import OpCheckError, opcheck
    from candelabra_conformance.parametrize import devices, each_device
    from candelabra_conformance.shadowing import Divergence, DivergenceError, DivergenceWarning, ShadowLog, shadow
    from candelabra_conformance.ulp import ulp_error

_MODULES: Final[dict[str, str]] = {
    "assert_close": "closeness", "ulp_error": "ulp", "opcheck": "opchecking", "OpCheckError": "opchecking",
    "devices": "parametrize", "each_device": "parametrize", "shadow": "shadowing", "ShadowLog": "shadowing",
    "Divergence": "shadowing", "DivergenceError": "shadowing", "DivergenceWarning": "shadowing",
}  # fmt: skip
"""Public name → its module. No module has the name of a public function, since its import would hide the function."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})


__all__ = [
    "Divergence",
    "DivergenceError",
    "DivergenceWarning",
    "OpCheckError",
    "ShadowLog",
    "assert_close",
    "devices",
    "each_device",
    "opcheck",
    "shadow",
    "ulp_error",
]
