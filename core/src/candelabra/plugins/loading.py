"""Checking a plugin at registration: both sides are quoted, and a failure leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pluggy

from candelabra.backend import API_VERSION, Backend, Kernel
from candelabra.errors import BackendError
from candelabra.operator.record import OPERATORS
from candelabra.plugins.hooks import Hooks

_manager: pluggy.PluginManager | None = None


def manager() -> pluggy.PluginManager:
    """The plugin manager, made at first use."""
    global _manager
    if _manager is None:
        _manager = pluggy.PluginManager("candelabra")
        _manager.add_hookspecs(Hooks)
    return _manager


def register(name: str, plugin: Any) -> Callable[[], None]:
    """Register a plugin object and return the function that takes it off again."""
    pm = manager()
    operators = set(OPERATORS)
    pm.register(plugin, name)
    pm.check_pending()

    def undo() -> None:
        pm.unregister(plugin)
        for added in set(OPERATORS) - operators:
            del OPERATORS[added]

    return undo


def _call(plugin: Any, hook: str) -> Any:
    """Call one plugin's implementation of a hook; None where it has none."""
    for implementation in getattr(manager().hook, hook).get_hookimpls():
        if implementation.plugin is plugin:
            return implementation.function()
    return None


def checked_backend(name: str, plugin: Any) -> Backend:
    """Ask for the backend and check it."""
    made = _call(plugin, "candelabra_backend")
    if made is None:
        raise BackendError(
            f"plugin {name!r} implements no hook candelabra_backend: define it with @candelabra.plugins.hooks.hookimpl"
        )
    check_backend(name, made)
    assert isinstance(made, Backend)
    return made


def check_backend(name: str, made: Any) -> None:
    """Name, contract and version window."""
    if not isinstance(made, Backend):
        raise BackendError(f"plugin {name!r}: candelabra_backend() returned {made!r}, not a candelabra.backend.Backend")
    if made.name != name:
        raise BackendError(f"plugin {name!r}: its backend calls itself {made.name!r}; the two names must be equal")
    low, high = made.api
    if not (low[0] <= API_VERSION[0] <= high[0] and low <= API_VERSION):
        raise BackendError(
            f"backend {name!r} was built for core API {_text(low)} to {_text(high)}, this core offers {_text(API_VERSION)}: "
            + ("update the backend" if high < API_VERSION else "update candelabra")
        )


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def checked_kernels(made: Backend) -> dict[str, Kernel]:
    """The kernel table; names that no operator has, and values that cannot be called, are refused."""
    table = dict(made.kernels())
    for name, kernel in table.items():
        base = name[:-1] if name.endswith("_") and name not in OPERATORS else name
        if base not in OPERATORS:
            raise BackendError(f"backend {made.name!r} has a kernel for {name!r}, but no operator has that name")
        if not callable(kernel):
            raise BackendError(f"backend {made.name!r}: the kernel of {name!r} is not callable: {kernel!r}")
    return table


def declare_operators(plugin: Any) -> None:
    """Let a plugin declare operators of its own."""
    _call(plugin, "candelabra_operators")
