"""Check a plugin at registration. Errors quote the plugin and the contract, and a failure is undone completely."""

from __future__ import annotations

from collections.abc import Callable

import pluggy

from candelabra._annotations import Any
from candelabra._plugins.hooks import Hooks
from candelabra._records.record import OPERATORS
from candelabra.backend import API_VERSION, Backend, Capabilities, Kernel
from candelabra.errors import BackendError

_manager: pluggy.PluginManager | None = None


def manager() -> pluggy.PluginManager:
    """Return the plugin manager, which is created at the first use."""
    global _manager
    if _manager is None:
        _manager = pluggy.PluginManager("candelabra")
        _manager.add_hookspecs(Hooks)
    return _manager


def register(name: str, plugin: Any) -> Callable[[], None]:
    """Register a plugin object and return the function that unregisters it.

    Raises pluggy's errors for an implementation of an unknown hook, or of a hook with other parameters.
    """
    pm = manager()
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


def call_hook(plugin: Any, hook: str) -> Any:
    """Call one plugin's implementation of a hook. Return None if it has none."""
    for implementation in getattr(manager().hook, hook).get_hookimpls():
        if implementation.plugin is plugin:
            return implementation.function()
    return None


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


def check_backend(name: str, backend: Any) -> None:
    """Check the name, contract, version window and capabilities of a backend."""
    if not isinstance(backend, Backend):
        raise BackendError(
            f"plugin {name!r}: candelabra_backend() returned {backend!r}, not a candelabra.backend.Backend"
        )
    own = getattr(backend, "name", None)
    if own != name:
        raise BackendError(f"plugin {name!r}: its backend has the name {own!r}; the two names must be equal")
    if not name.isidentifier():
        raise BackendError(f"plugin {name!r}: a device type must be an identifier, as in device('name:0')")
    _check_window(name, backend.api)
    capabilities = getattr(backend, "capabilities", None)
    if not isinstance(capabilities, Capabilities):
        raise BackendError(
            f"backend {name!r}: its capabilities are {capabilities!r}, not candelabra.backend.Capabilities"
        )
    for method in ("layout", "restride") if capabilities.strided else ():
        if getattr(type(backend), method) is getattr(Backend, method):
            raise BackendError(f"backend {name!r} claims strided=True but has no {method}()")


def _check_window(name: str, window: Any) -> None:
    try:
        (low, high) = (tuple(int(n) for n in version) for version in window)
        well_formed = len(low) == len(high) == 2
    except (TypeError, ValueError):
        well_formed = False
    if not well_formed:
        raise BackendError(
            f"backend {name!r}: api must be ((major, minor), (major, minor)), the first and the last, got {window!r}"
        )
    # A minor version only adds, so a newer minor of the last major is compatible. A core before the first is not.
    if low <= API_VERSION and API_VERSION[0] <= high[0]:
        return
    advice = "update candelabra" if low > API_VERSION else f"update the package that brings {name!r}"
    raise BackendError(
        f"backend {name!r} was built for core API {_text(low)} to {_text(high)}, this core has {_text(API_VERSION)}: "
        + advice
    )


def _text(version: tuple[int, ...]) -> str:
    return f"{version[0]}.{version[1]}"


def checked_kernels(backend: Backend) -> dict[str, Kernel]:
    """Return the kernel table. Raise BackendError for unknown operators and for values that are not callable."""
    table = dict(backend.kernels())
    for name, kernel in table.items():
        check_kernel(backend.name, name, kernel)
    return table


def check_kernel(backend: str, name: str, kernel: Any) -> None:
    """Check one entry of a kernel table."""
    base = name[:-1] if name.endswith("_") and name not in OPERATORS else name
    if base not in OPERATORS:
        raise BackendError(f"backend {backend!r} has a kernel for {name!r}, but no operator has that name")
    if not callable(kernel):
        raise BackendError(f"backend {backend!r}: the kernel of {name!r} is not callable: {kernel!r}")


def declare_operators(plugin: Any) -> None:
    """Let a plugin declare its operators."""
    call_hook(plugin, "candelabra_operators")
