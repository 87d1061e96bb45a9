"""Register a plugin's object with pluggy, and call its hooks. A failure is undone completely."""

from __future__ import annotations

from collections.abc import Callable

import pluggy

from candelabra._annotations import Any
from candelabra._plugins.checking import check_backend
from candelabra._plugins.hooks import PluginHooks
from candelabra.backend import Backend
from candelabra.errors import BackendError

_manager: pluggy.PluginManager | None = None


def manager() -> pluggy.PluginManager:
    """Return the plugin manager, which is created at the first use."""
    global _manager
    if _manager is None:
        created = pluggy.PluginManager("candelabra")
        created.add_hookspecs(PluginHooks)
        _manager = created  # last: another thread must not find a manager without specifications
    return _manager


def register(name: str, plugin: Any) -> Callable[[], None]:
    """Register a plugin object and return the function that unregisters it.

    Raises pluggy's errors for an implementation of an unknown hook, or of a hook with other parameters.
    """
    pm = manager()
    if pm.is_registered(plugin):  # one object may have hooks of several entry point groups
        return lambda: None
    pm.register(plugin, name)

    def undo() -> None:
        if pm.is_registered(plugin):
            pm.unregister(plugin)

    try:
        pm.check_pending()
    except BaseException:
        undo()
        raise
    return undo


def call_hook(plugin: Any, hook: str, **arguments: Any) -> Any:
    """Call one plugin's implementation of a hook with the arguments that it takes. Return None if it has none."""
    for implementation in getattr(manager().hook, hook).get_hookimpls():
        if implementation.plugin is plugin:
            return implementation.function(*[arguments[name] for name in implementation.argnames])
    return None


def has_hook(plugin: Any, hook: str) -> bool:
    """Return whether a registered plugin implements a hook."""
    return any(each.plugin is plugin for each in getattr(manager().hook, hook).get_hookimpls())


def checked_backend(name: str, plugin: Any) -> Backend:
    """Return the plugin's backend after checking it."""
    backend = call_hook(plugin, "candelabra_backend")
    if backend is None:
        raise BackendError(
            f"plugin {name!r} implements no hook candelabra_backend: define it with @candelabra.backend.hookimpl"
        )
    check_backend(name, backend)
    assert isinstance(backend, Backend)
    return backend


def declare_operators(plugin: Any) -> None:
    """Let a plugin declare its operators."""
    call_hook(plugin, "candelabra_operators")
