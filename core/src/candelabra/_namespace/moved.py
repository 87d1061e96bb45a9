"""Import paths of before 0.2, which lead to where their modules are now and warn. They go in the next release."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from candelabra._annotations import Any, Final

MOVED: Final[dict[str, str]] = {
    "candelabra.operator.record": "candelabra.library",
    "candelabra.operator.rules": "candelabra.library",
    "candelabra.operator.promotion": "candelabra.library",
    "candelabra.operator.derivative": "candelabra.library",
    "candelabra.operator.schema": "candelabra.library",
    "candelabra.operator": "candelabra.library",
    "candelabra.plugins.hooks": "candelabra.backend",
    "candelabra.plugins.registry": "candelabra._plugins.registry",
    "candelabra.plugins": "candelabra._plugins",
    "candelabra.layout": "candelabra.backend",
    "candelabra.namespace": "candelabra.library",
    "candelabra.cli.main": "candelabra._cli.main",
    "candelabra.cli": "candelabra._cli",
}
"""The modules that documents named, and the module that has their names now."""
INSTEAD: Final[dict[str, str]] = {
    "candelabra._plugins.registry": "candelabra.library.plugins",
    "candelabra._plugins": "candelabra.library",
    "candelabra._cli.main": "candelabra.library.command",
    "candelabra._cli": "candelabra.library",
}
"""What the warning names in place of an internal module."""


class _Moved(ModuleType):
    """A module under its old name: hands out the names of the one that took its place."""

    def __getattr__(self, name: str) -> Any:
        target = MOVED[self.__name__]
        __import__(target)
        if name == "__path__" and hasattr(sys.modules[target], "__path__"):
            return []
        return getattr(sys.modules[target], name)


class MovedModules:
    """A finder that is asked last, when there is no module of that name."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """The spec of a moved module; None for any other name."""
        if name not in MOVED:
            return None
        import warnings
        from importlib.machinery import ModuleSpec

        now = INSTEAD.get(MOVED[name], MOVED[name])
        warnings.warn(
            f"the module {name} has moved: import from {now} instead. The old path goes in the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        package = any(other.startswith(name + ".") for other in MOVED)
        return ModuleSpec(name, MovedModules, is_package=package)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: Any) -> ModuleType:
        """The module, empty: its names are found when they are asked for."""
        return _Moved(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Nothing to run."""


def install() -> None:
    """Let old paths be found."""
    if MovedModules not in sys.meta_path:
        sys.meta_path.append(MovedModules)
