"""Imports of the modules of device types: ``from candelabra.<device type>.amp import autocast``.

These modules are objects (``candelabra._device_modules``) and not files, since a device type is a name in metadata. The
finder below serves ``import`` statements from the attributes of the package: ``candelabra.<device type>``, its
submodules, and ``candelabra.backends.<name>``. It comes after Python's own finders, so it also serves
``candelabra.distributed`` where that distribution is not installed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from candelabra._annotations import Any


def module_named(name: str) -> ModuleType | None:
    """Return the module of an import path, or None if there is none of that name."""
    package, _, rest = name.partition(".")
    first, *others = rest.split(".")
    if package != "candelabra" or not rest:
        return None
    if first == "backends":
        import candelabra.backends

        found: Any = candelabra.backends if others else None
    elif first == "distributed":
        import candelabra._absent_distributed as found
    else:
        from candelabra._device_modules import device_module

        found = device_module(first)
    for attribute in others:
        found = getattr(found, attribute, None)
    return found if isinstance(found, ModuleType) else None


class DeviceImports:
    """A finder of ``sys.meta_path`` for modules that are attributes."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """Return the spec of such a module, or None for any other name."""
        if not name.startswith("candelabra.") or module_named(name) is None:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, DeviceImports, is_package=True)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: Any) -> ModuleType | None:
        """Return the module itself."""
        return module_named(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Do nothing: the module has no code."""


def install() -> None:
    """Add the finder to ``sys.meta_path``."""
    if DeviceImports not in sys.meta_path:
        sys.meta_path.append(DeviceImports)
