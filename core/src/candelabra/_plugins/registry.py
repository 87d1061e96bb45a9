"""The registry of backends and their state: found, loaded, or failed with a traceback.

Listing the names reads only the metadata of installed distributions. A plugin is imported when its device is first
named or listed. An exception that it raises is kept and reported for each use of that device; other devices keep
working.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from candelabra import _journal as journal
from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import device, forget_instances, named_device
from candelabra._invalidation import invalidate
from candelabra._plugins import names
from candelabra._plugins.describing import shown, summary, text_of
from candelabra._plugins.metadata import entry_point, entry_points
from candelabra.errors import BackendError, DeviceUnavailable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from candelabra._plugins.contributed_kernels import Contribution
    from candelabra.backend import Backend, DeviceInfo, Kernel

GROUP: Final = "candelabra.backends"
ENVIRONMENT: Final = "CANDELABRA_BACKENDS"
"""The environment variable with a comma-separated list of device types: the others are hidden."""


BUILT_IN: Final[dict[str, str]] = {"meta": "candelabra._meta:MetaBackend"}
"""The devices of the core with their entry points, which are loaded at the first use, as those of plugins are. They
are not listed among the devices that compute."""


class BeingLoaded(BackendError):
    """A plugin's import used the plugin's own device. The failure is temporary: the device may exist later."""


@dataclass
class Plugin:
    """One entry point and its state."""

    name: str
    entry: EntryPoint | None
    distribution: str = ""
    """The owner of the device type."""
    backend: Backend | None = None
    own: dict[str, Kernel] = field(default_factory=dict)
    """The owner's kernels."""
    kernels: dict[str, Kernel] = field(default_factory=dict)
    """The kernels that serve: the owner's, those that other distributions contribute, and registered ones."""
    contributions: list[Contribution] = field(default_factory=list)
    """The contributions of other distributions. The one that serves first comes first."""
    error: BaseException | None = None
    traceback: str = ""
    steps: list[str] = field(default_factory=lambda: ["found"])
    plugin: Any = None
    loading: bool = False

    @property
    def loaded(self) -> bool:
        return self.backend is not None


# Two locks, so that reading the list never waits for another thread's import.
_listing: Final = threading.RLock()
_loading: Final = threading.RLock()
_plugins: dict[str, Plugin] | None = None


def plugins() -> dict[str, Plugin]:
    """Return every backend plugin by device type, in alphabetical order, without importing it."""
    global _plugins
    with _listing:
        if _plugins is None:
            _plugins = _discover()
        return dict(sorted(_plugins.items()))


def _table() -> dict[str, Plugin]:
    plugins()
    assert _plugins is not None
    return _plugins


def allowed_names() -> set[str] | None:
    """Return the device types in the environment variable, or None if it is not set."""
    only = os.environ.get(ENVIRONMENT)
    return None if only is None else {name.strip() for name in only.split(",") if name.strip()}


def _discover() -> dict[str, Plugin]:
    allowed = allowed_names()
    found: dict[str, Plugin] = {}
    owners: dict[str, list[str]] = {}
    for entry in sorted(entry_points(GROUP), key=lambda e: (e.name, e.value)):
        if allowed is not None and entry.name not in allowed:
            continue
        owner = canonical(entry.dist.name) if entry.dist is not None else entry.value
        first = found.setdefault(entry.name, Plugin(entry.name, entry, owner))
        same = first.entry is not None and (first.distribution, first.entry.value) == (owner, entry.value)
        if first.entry is not entry and not same:  # equal if one installation is found through two paths
            owners.setdefault(entry.name, [_claim(first)]).append(f"{owner} ({entry.value})")
    for name, claims in owners.items():
        found[name].error = BackendError(
            f"device type {name!r} has {len(claims)} owners, {' and '.join(claims)}: uninstall all but one"
        )
    return found


def canonical(distribution: str) -> str:
    """Return a distribution's name in lower case and with hyphens."""
    return distribution.lower().replace("_", "-")


def _claim(plugin: Plugin) -> str:
    return f"{plugin.distribution} ({plugin.entry.value})" if plugin.entry is not None else plugin.distribution


# -- loading ----------------------------------------------------------------------------------------------------------
def backend(name: str) -> tuple[Backend, dict[str, Kernel]]:
    """Load and return the backend of a device type. Raise BackendError with the reason and the remedy on failure."""
    if name in BUILT_IN:
        own = entry_point(name, BUILT_IN[name], GROUP).load()()
        return own, own.kernels()
    plugin = plugins().get(name)
    if plugin is None:
        raise BackendError(missing(name))
    return load(plugin)


def load(plugin: Plugin) -> tuple[Backend, dict[str, Kernel]]:
    """Load a plugin once, also with several threads. Raise BackendError if it fails or has failed before.

    If loading raises ``DeviceUnavailable``, the machine lacks something such as a library: the plugin is treated as one
    without devices, not as a broken one.
    """
    if plugin.backend is None:
        with _loading:
            if plugin.loading:
                raise BeingLoaded(
                    f"backend {plugin.name!r} is used while it is being loaded: its import, or one that it causes, "
                    "uses its device. Create tensors in the plugin's functions, not at import"
                )
            if plugin.backend is None and plugin.error is None:
                _load(plugin)
                if plugin.backend is not None:
                    _warn_of_contributions(plugin)
    if plugin.backend is None:
        assert plugin.error is not None
        if isinstance(plugin.error, DeviceUnavailable):
            raise DeviceUnavailable(text_of(plugin.error)) from plugin.error
        raise BackendError(
            f"backend {plugin.name!r} (distribution {plugin.distribution!r}) failed to load: "
            f"{summary(plugin.error)}. `candelabra doctor` shows the traceback"
        ) from plugin.error
    return plugin.backend, plugin.kernels


def _load(plugin: Plugin) -> None:
    """Import and check a plugin and get its kernels. If any step fails, undo all of them."""
    plugin.loading = True
    try:
        with journal.Recording() as recording:
            try:
                backend, kernels, loaded = _import_plugin(plugin)
                _set_kernels(plugin, kernels)
            except BaseException:
                recording.undo()
                raise
    except (KeyboardInterrupt, BeingLoaded):
        plugin.steps = ["found"]
        raise
    except BaseException as error:  # SystemExit too: a plugin must not end the program
        plugin.error = error
        plugin.traceback = traceback.format_exc()
        return
    finally:
        plugin.loading = False
    plugin.plugin = loaded
    plugin.backend = backend  # last: a thread that reads it without the lock must also find the other attributes


def _import_plugin(plugin: Plugin) -> tuple[Backend, dict[str, Kernel], Any]:
    from candelabra._plugins.checking import checked_kernels
    from candelabra._plugins.loading import checked_backend, declare_operators, register

    assert plugin.entry is not None
    loaded = plugin.entry.load()
    plugin.steps.append("imported")
    journal.note(register(plugin.name, loaded))
    backend = checked_backend(plugin.name, loaded)
    plugin.steps.append("version window ok")
    declare_operators(loaded)
    kernels = checked_kernels(backend)
    plugin.steps.append(f"{len(kernels)} kernels")
    return backend, kernels, loaded


def _set_kernels(plugin: Plugin, kernels: dict[str, Kernel]) -> None:
    """Set the owner's kernels and build the table that serves, with the contributions of other distributions."""
    from candelabra._plugins.contributed_kernels import load_contributions

    plugin.own, plugin.kernels, plugin.contributions = kernels, dict(kernels), []
    load_contributions(plugin)


def _warn_of_contributions(plugin: Plugin) -> None:
    if plugin.contributions:
        from candelabra._plugins.contributed_kernels import warn_of_failures

        warn_of_failures(plugin)


def loading() -> threading.RLock:
    """Return the lock that is held while a plugin loads or changes."""
    return _loading


def add_backend(backend: Backend, plugin: Any = None) -> Callable[[], None]:
    """Register a backend without an entry point, for tests and notebooks, and return the function that removes it.

    ``plugin`` is an object with further hooks (operators, commands, samples). Raises BackendError, without side
    effects, if the device type already has an owner or the backend violates the contract. After the removal, existing
    tensors on the device keep working.
    """
    from candelabra._plugins.checking import check_backend, checked_kernels
    from candelabra._plugins.loading import declare_operators, register

    with _loading:
        table = _table()
        name = getattr(backend, "name", type(backend).__name__)
        if name in BUILT_IN:
            raise BackendError(f"device type {name!r} already has an owner, the core: choose another name")
        if name in table:
            raise BackendError(
                f"device type {name!r} already has an owner, {table[name].distribution!r}: one device type, one backend"
            )
        with journal.Recording() as recording:
            try:
                check_backend(name, backend)
                if plugin is not None:
                    journal.note(register(name, plugin))
                    declare_operators(plugin)
                added = Plugin(name, None, type(backend).__module__, backend, steps=["added by hand"], plugin=plugin)
                _set_kernels(added, checked_kernels(backend))
                _warn_of_contributions(added)
            except BaseException:
                recording.undo()
                raise
        table[name] = added

    def remove() -> None:
        with _loading:
            if _table().get(name) is added:
                del _table()[name]
                forget_instances(name)
                recording.undo()
                invalidate()

    invalidate()  # calls that failed without a reference device may succeed now
    journal.note(remove)
    return remove


def missing(name: str) -> str:
    """Return the text of the error for a device type without a plugin."""
    command = names.install_command(name)
    allowed = allowed_names()
    if allowed is not None and name not in allowed:
        return f"device type {name!r} is hidden: {ENVIRONMENT} lets only {', '.join(sorted(allowed)) or 'none'} be seen"
    if not plugins():
        command = command or names.install_command()
        return f"no backend is installed for device {name!r}, nor any other: the core has no kernels of its own" + (
            f". Install one: {command}" if command else ""
        )
    advice = f": {command}" if command else " (is its package installed?)"
    return f"no backend is installed for device type {name!r}{advice}. Installed: {', '.join(plugins())}"


def nothing_installed() -> str:
    """Return the text of the error if no backend is installed and no device was named."""
    if allowed_names() is not None:
        return f"no backend can be seen: {ENVIRONMENT}={os.environ[ENVIRONMENT]!r} hides all that are installed"
    command = names.install_command()
    return "no backend is installed, and the core has no kernels of its own" + (
        f". Install one: {command}" if command else ""
    )


# -- choosing ---------------------------------------------------------------------------------------------------------
def working(first: str = "") -> Iterator[tuple[Plugin, Backend]]:
    """Yield every plugin that loads, with its backend, in alphabetical order.

    A plugin is imported when the iteration reaches it, so that a caller who stops early does not import the others.
    ``first``: begin with the device types that metadata registers as this kind.
    """
    kinds = names.registered_names() if first else {}
    for plugin in sorted(plugins().values(), key=lambda p: (kinds.get(p.name) != first, p.name)):
        try:
            yield plugin, load(plugin)[0]
        except BackendError:
            continue


def reference_device() -> device:
    """Return the reference device: a device in the host's memory, to which others fall back.

    Device types that are registered as the host's are tried first: no other plugin has to be imported, which may fail
    or hang.
    """
    for _, backend in working(names.host.name):
        if backend.capabilities.host:
            return named_device(backend, 0, device_count(backend))
    if not plugins():
        raise BackendError(nothing_installed())
    broken = [f"{name} failed to load: {summary(error)}" for name, error in failures().items()]
    command = names.install_command()
    raise BackendError(
        "no backend on the host's memory works"
        + (f" ({'; '.join(broken)}; `candelabra doctor` shows the traceback)" if broken else "")
        + (f". Install one: {command}" if command and not broken else "")
    )


def default_device() -> device:
    """Return the default device for new tensors: the reference device, or else the first working device."""
    try:
        return reference_device()
    except BackendError:
        for _, backend in working():
            if device_count(backend):
                return named_device(backend, 0, device_count(backend))
        raise


def accelerator() -> str:
    """Return the first working device type that is not the host's, or else that of the default device."""
    for _, backend in working():
        if not backend.capabilities.host and device_count(backend):
            return backend.name
    return default_device().type


def devices_of(backend: Backend) -> Sequence[DeviceInfo]:
    """Return a backend's devices. Raise ``DeviceUnavailable`` if it has none for a reason that it gives.

    Raises ``BackendError`` with the device type's name if the backend raises anything else, even SystemExit, or returns
    anything but a sequence of :class:`DeviceInfo`.
    """
    from candelabra.backend import DeviceInfo

    try:
        found = backend.devices()
    except (KeyboardInterrupt, DeviceUnavailable):
        raise
    except BaseException as error:
        raise BackendError(f"backend {backend.name!r}: devices() failed: {summary(error)}") from error
    if not isinstance(found, Sequence) or not all(isinstance(each, DeviceInfo) for each in found):
        raise BackendError(
            f"backend {backend.name!r}: devices() must return a sequence of candelabra.backend.DeviceInfo, "
            f"it returned {shown(found)}"
        )
    return found


def device_count(backend: Backend) -> int:
    """Return the number of a backend's devices, or 0 if it has none or fails to list them."""
    try:
        return len(devices_of(backend))
    except BackendError:
        return 0


def owner_kernels(device_type: str) -> dict[str, Kernel]:
    """Return the kernels of a device type's owner, without contributed and registered ones."""
    _, kernels = backend(device_type)
    plugin = plugins().get(device_type)
    return kernels if plugin is None else dict(plugin.own)


def contributing(device_type: str) -> list[Contribution]:
    """Return the contributions that serve a device type, which is loaded, in the order in which they serve."""
    backend(device_type)
    plugin = plugins().get(device_type)
    return [each for each in plugin.contributions if each.kernels] if plugin is not None else []


def backends_with_kernel(operator: str) -> list[str]:
    """Return the device types that have been loaded and have a kernel for an operator."""
    return [plugin.name for plugin in plugins().values() if plugin.loaded and operator in plugin.kernels]


def failures() -> dict[str, BaseException]:
    """Return the device types whose plugin failed to load, with the reason."""
    return {name: p.error for name, p in plugins().items() if p.error is not None}
