"""Import paths from before 0.2. They lead to the current modules with a warning; the next release removes them."""

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
    "candelabra.nn.activation": "candelabra.nn.modules.activation",
    "candelabra.nn.containers": "candelabra.nn.modules.container",
    "candelabra.nn.convolution": "candelabra.nn.modules.conv",
    "candelabra.nn.dropout": "candelabra.nn.modules.dropout",
    "candelabra.nn.flatten": "candelabra.nn.modules.flatten",
    "candelabra.nn.linear": "candelabra.nn.modules.linear",
    "candelabra.nn.loss": "candelabra.nn.modules.loss",
    "candelabra.nn.module": "candelabra.nn.modules.module",
    "candelabra.nn.normalization": "candelabra.nn.modules.normalization",
    "candelabra.nn.pooling": "candelabra.nn.modules.pooling",
    "candelabra.nn.sparse": "candelabra.nn.modules.sparse",
}
"""The documented modules of earlier releases, and the modules that have their names now."""
INSTEAD: Final[dict[str, str]] = {
    "candelabra._plugins.registry": "candelabra.library.plugins",
    "candelabra._plugins": "candelabra.library",
    "candelabra._cli.main": "candelabra.library.command",
    "candelabra._cli": "candelabra.library",
}
"""The public module that the warning names instead of an internal one."""


class _Moved(ModuleType):
    """A module under its old name, with the names of its replacement."""

    def __getattr__(self, name: str) -> Any:
        target = MOVED[self.__name__]
        __import__(target)
        if name == "__path__" and hasattr(sys.modules[target], "__path__"):
            return []
        return getattr(sys.modules[target], name)


class MovedModules:
    """The last finder of ``sys.meta_path``, which serves names that no other finder knows."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """Return the spec of a moved module, or None for any other name."""
        if name not in MOVED:
            return None
        import warnings
        from importlib.machinery import ModuleSpec

        now = INSTEAD.get(MOVED[name], MOVED[name])
        warnings.warn(
            f"the module {name} has moved: import from {now} instead. The next release removes the old path",
            DeprecationWarning,
            stacklevel=2,
        )
        package = any(other.startswith(name + ".") for other in MOVED)
        return ModuleSpec(name, MovedModules, is_package=package)  # type: ignore[arg-type]

    @staticmethod
    def create_module(spec: Any) -> ModuleType:
        """Return an empty module, which looks its names up at their first use."""
        return _Moved(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Do nothing: the module has no code."""


def install() -> None:
    """Add the finder of old paths to ``sys.meta_path``."""
    if MovedModules not in sys.meta_path:
        sys.meta_path.append(MovedModules)
