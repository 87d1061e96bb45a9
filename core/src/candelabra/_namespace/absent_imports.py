"""``import candelabra.distributed`` where candelabra-distributed is not installed.

PyTorch's programs import it at their head and then ask ``is_available()``. The finder below comes after Python's
own, so it serves only modules that are not installed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from candelabra._annotations import Any, Final

ABSENT: Final[dict[str, str]] = {"candelabra.distributed": "candelabra._absent_distributed"}
"""Modules of other distributions, and the modules that replace them."""


class AbsentImports:
    """A finder of ``sys.meta_path`` for modules that are not installed."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """Return the spec of the module that replaces another, or None for any other name."""
        if name not in ABSENT:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, AbsentImports)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: Any) -> ModuleType:
        """Return the replacement."""
        home = ABSENT[spec.name]
        __import__(home)
        return sys.modules[home]

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Do nothing: the import of :meth:`create_module` has run the code."""


def install() -> None:
    """Add the finder to ``sys.meta_path``."""
    if AbsentImports not in sys.meta_path:
        sys.meta_path.append(AbsentImports)
