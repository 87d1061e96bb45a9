"""Which backends exist, and their state: found, loaded, or failed with a traceback.

Listing names touches the metadata of installed distributions; a plugin is imported when its device is first named or
listed. Whatever it raises is caught, kept, and told to whoever asks for that device: everything else works on.
"""

from __future__ import annotations

import os
import threading
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from candelabra.device import device
from candelabra.errors import BackendError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from candelabra.backend import Backend, Kernel

GROUP: Final = "candelabra.backends"
ENVIRONMENT: Final = "CANDELABRA_BACKENDS"
"""A comma-separated list of device types: only those are seen."""


@dataclass
class Plugin:
    """One entry point and what became of it."""

    name: str
    entry: EntryPoint | None
    distribution: str = ""
    backend: Backend | None = None
    kernels: dict[str, Kernel] = field(default_factory=dict)
    error: BaseException | None = None
    traceback: str = ""
    steps: list[str] = field(default_factory=lambda: ["found"])
    plugin: Any = None

    @property
    def loaded(self) -> bool:
        return self.backend is not None


_lock: Final = threading.RLock()
_plugins: dict[str, Plugin] | None = None
_duplicates: Final[dict[str, list[str]]] = {}


def plugins() -> dict[str, Plugin]:
    """Every backend plugin by device type, in alphabetical order; nothing is imported for it."""
    global _plugins
    with _lock:
        if _plugins is None:
            _plugins = _discover()
        return _plugins


def _discover() -> dict[str, Plugin]:
    from importlib.metadata import entry_points

    only = os.environ.get(ENVIRONMENT)
    allowed = None if only is None else {name.strip() for name in only.split(",") if name.strip()}
    found: dict[str, Plugin] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (e.name, e.value)):
        if allowed is not None and entry.name not in allowed:
            continue
        owner = entry.dist.name if entry.dist is not None else entry.value
        if entry.name in found:
            if found[entry.name].entry is not None and found[entry.name].entry.value == entry.value:  # type: ignore[union-attr]
                continue  # one installation seen through two paths
            _duplicates.setdefault(entry.name, [found[entry.name].distribution]).append(owner)
            continue
        found[entry.name] = Plugin(entry.name, entry, owner)
    for name, owners in _duplicates.items():
        found[name].error = BackendError(
            f"device type {name!r} has {len(owners)} owners, {' and '.join(owners)}: uninstall all but one"
        )
    return found


def backend(name: str) -> tuple[Backend, dict[str, Kernel]]:
    """The backend of a device type, loaded; BackendError says why it cannot be, and what to do."""
    plugin = plugins().get(name)
    if plugin is None:
        raise BackendError(missing(name))
    return _loaded(plugin)


def _loaded(plugin: Plugin) -> tuple[Backend, dict[str, Kernel]]:
    with _lock:
        if plugin.backend is None and plugin.error is None:
            _load(plugin)
        if plugin.backend is None:
            assert plugin.error is not None
            raise BackendError(
                f"backend {plugin.name!r} (distribution {plugin.distribution!r}) failed to load: "
                f"{type(plugin.error).__name__}: {plugin.error}. `candelabra doctor` shows the traceback"
            ) from plugin.error
        return plugin.backend, plugin.kernels


def _load(plugin: Plugin) -> None:
    """Import, check, ask for kernels; commit only when all of it went well."""
    from candelabra.plugins.loading import checked_backend, checked_kernels, declare_operators, register

    try:
        assert plugin.entry is not None
        module = plugin.entry.load()
        plugin.steps.append("imported")
        undo = register(plugin.name, module)
        try:
            made = checked_backend(plugin.name, module)
            plugin.steps.append("version window ok")
            declare_operators(module)
            kernels = checked_kernels(made)
            plugin.steps.append(f"{len(kernels)} kernels")
        except BaseException:
            undo()
            raise
    except Exception as error:
        plugin.error = error
        plugin.traceback = traceback.format_exc()
        return
    plugin.backend, plugin.kernels, plugin.plugin = made, kernels, module


def add_backend(made: Backend, plugin: Any = None) -> None:
    """Register a backend without an entry point, for tests and notebooks. Refuses a device type that has an owner."""
    from candelabra.plugins.loading import check_backend, checked_kernels

    with _lock:
        table = plugins()
        if made.name in table:
            raise BackendError(
                f"device type {made.name!r} already has an owner, {table[made.name].distribution!r}: one device type, one backend"
            )
        check_backend(made.name, made)
        table[made.name] = Plugin(
            made.name, None, type(made).__module__, made, checked_kernels(made), steps=["added by hand"], plugin=plugin
        )


def missing(name: str) -> str:
    """What to say when no plugin owns a device type."""
    present = ", ".join(plugins()) or "none"
    extra = f': pip install "candelabra[{name}]"' if name in known_extras() else ""
    if not plugins():
        return (
            f"no backend is installed for device {name!r}, nor any other: the core has no kernels of its own. "
            f'Install one: pip install "candelabra[{name if name in known_extras() else "cpu"}]"'
        )
    return f"no backend is installed for device type {name!r}{extra or ' (is its package installed?)'}. Installed: {present}"


def known_extras() -> set[str]:
    """The extras that the core's own metadata offers: what `pip install "candelabra[…]"` can bring."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        return set(metadata("candelabra").get_all("Provides-Extra") or ())
    except PackageNotFoundError:
        return set()


# -- choosing -----------------------------------------------------------------------------------------------------------
def reference_device() -> device:
    """The device on the host's memory that others fall back to."""
    broken = []
    for plugin in plugins().values():
        try:
            made, _ = _loaded(plugin)
        except BackendError as error:
            broken.append(str(error))
            continue
        if made.capabilities.host:
            return device(made.name, 0)
    raise BackendError("no backend on the host's memory is installed; " + ("; ".join(broken) or missing("cpu")))


def default_device() -> device:
    """Where tensors go when nobody says where: the reference device, else the first device that works."""
    try:
        return reference_device()
    except BackendError as failure:
        for plugin in plugins().values():
            if plugin.backend is not None and _count(plugin.backend):
                return device(plugin.name, 0)
        if not plugins():
            raise BackendError(
                'no backend is installed, and the core has no kernels of its own. Install one: pip install "candelabra[cpu]"'
            ) from None
        raise failure


def accelerator() -> str:
    """The device type that is not the host's, if there is exactly one that works; else the default's."""
    for plugin in plugins().values():
        try:
            made, _ = _loaded(plugin)
        except BackendError:
            continue
        if not made.capabilities.host and _count(made):
            return made.name
    return default_device().type


def _count(made: Backend) -> int:
    try:
        return len(made.devices())
    except Exception:
        return 0


def backends_with_kernel(operator: str) -> list[str]:
    """The loaded or loadable device types that have a kernel of their own for an operator."""
    names = []
    for plugin in plugins().values():
        try:
            _, kernels = _loaded(plugin)
        except BackendError:
            continue
        if operator in kernels:
            names.append(plugin.name)
    return names


def failures() -> dict[str, BaseException]:
    """Device types whose plugin failed to load, with the reason."""
    return {name: p.error for name, p in plugins().items() if p.error is not None}
