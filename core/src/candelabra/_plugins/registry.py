"""Which backends exist, and their state: found, loaded, or failed with a traceback.

Listing names touches the metadata of installed distributions; a plugin is imported when its device is first named or
listed. Whatever it raises is caught, kept, and told to whoever asks for that device: everything else works on.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from candelabra import _journal as journal
from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._device import device, forget_instances
from candelabra._invalidation import invalidate
from candelabra._plugins import names
from candelabra.errors import BackendError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from candelabra.backend import Backend, Kernel

GROUP: Final = "candelabra.backends"
ENVIRONMENT: Final = "CANDELABRA_BACKENDS"
"""A comma-separated list of device types: only those are seen."""


def _meta() -> tuple[Backend, dict[str, Kernel]]:
    from candelabra._meta import MetaBackend

    made = MetaBackend()
    return made, made.kernels()  # type: ignore[return-value]


BUILT_IN: Final[dict[str, Callable[[], tuple[Backend, dict[str, Kernel]]]]] = {"meta": _meta}
"""The devices that are the core's own. They are not listed among the devices that compute."""


class BeingLoaded(BackendError):
    """A plugin's own import asked for the plugin's device. No lasting failure: later the device may be there."""


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
    loading: bool = False

    @property
    def loaded(self) -> bool:
        return self.backend is not None


# Two locks: who only looks at the list never waits for another thread's import.
_listing: Final = threading.RLock()
_loading: Final = threading.RLock()
_plugins: dict[str, Plugin] | None = None


def plugins() -> dict[str, Plugin]:
    """Every backend plugin by device type, in alphabetical order; nothing is imported for it."""
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
    """The device types that the environment variable names; None where it is not set."""
    only = os.environ.get(ENVIRONMENT)
    return None if only is None else {name.strip() for name in only.split(",") if name.strip()}


def _discover() -> dict[str, Plugin]:
    from importlib.metadata import entry_points

    allowed = allowed_names()
    found: dict[str, Plugin] = {}
    owners: dict[str, list[str]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (e.name, e.value)):
        if allowed is not None and entry.name not in allowed:
            continue
        owner = _canonical(entry.dist.name) if entry.dist is not None else entry.value
        first = found.setdefault(entry.name, Plugin(entry.name, entry, owner))
        same = first.entry is not None and (first.distribution, first.entry.value) == (owner, entry.value)
        if first.entry is not entry and not same:  # equal: one installation seen through two paths
            owners.setdefault(entry.name, [_claim(first)]).append(f"{owner} ({entry.value})")
    for name, claims in owners.items():
        found[name].error = BackendError(
            f"device type {name!r} has {len(claims)} owners, {' and '.join(claims)}: uninstall all but one"
        )
    return found


def _canonical(distribution: str) -> str:
    return distribution.lower().replace("_", "-")


def _claim(plugin: Plugin) -> str:
    return f"{plugin.distribution} ({plugin.entry.value})" if plugin.entry is not None else plugin.distribution


# -- loading ----------------------------------------------------------------------------------------------------------
def backend(name: str) -> tuple[Backend, dict[str, Kernel]]:
    """The backend of a device type, loaded; BackendError says why it cannot be, and what to do."""
    if name in BUILT_IN:
        return BUILT_IN[name]()
    plugin = plugins().get(name)
    if plugin is None:
        raise BackendError(missing(name))
    return load(plugin)


def load(plugin: Plugin) -> tuple[Backend, dict[str, Kernel]]:
    """Load a plugin unless that was done; several threads load it once. BackendError when it fails or has failed."""
    if plugin.backend is None:
        with _loading:
            if plugin.loading:
                raise BeingLoaded(
                    f"backend {plugin.name!r} is asked for while it is being loaded: its import, or one it causes, "
                    "uses its device. Let the plugin make tensors only when it is called"
                )
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
    """Import, check, ask for kernels; commit only when all of it went well, and take all of it back otherwise."""
    plugin.loading = True
    try:
        with journal.Recording() as recording:
            try:
                made, kernels, loaded = _brought_by(plugin)
            except BaseException:
                recording.undo()
                raise
    except (KeyboardInterrupt, BeingLoaded):
        plugin.steps = ["found"]
        raise
    except BaseException as error:  # SystemExit too: a plugin may end itself, not the program
        plugin.error = error
        plugin.traceback = traceback.format_exc()
        return
    finally:
        plugin.loading = False
    plugin.kernels, plugin.plugin = kernels, loaded
    plugin.backend = made  # last: who sees it without the lock sees the rest too


def _brought_by(plugin: Plugin) -> tuple[Backend, dict[str, Kernel], Any]:
    from candelabra._plugins.loading import checked_backend, checked_kernels, declare_operators, register

    assert plugin.entry is not None
    loaded = plugin.entry.load()
    plugin.steps.append("imported")
    journal.note(register(plugin.name, loaded))
    made = checked_backend(plugin.name, loaded)
    plugin.steps.append("version window ok")
    declare_operators(loaded)
    kernels = checked_kernels(made)
    plugin.steps.append(f"{len(kernels)} kernels")
    return made, kernels, loaded


def add_backend(made: Backend, plugin: Any = None) -> Callable[[], None]:
    """Register a backend without an entry point, for tests and notebooks, and return the function that removes it.

    ``plugin`` is an object with further hooks (operators, commands, samples). BackendError when the device type has an
    owner already or the backend breaks the contract; nothing of it stays then. After removal, tensors that are on the
    device keep working.
    """
    from candelabra._plugins.loading import check_backend, checked_kernels, declare_operators, register

    with _loading:
        table = _table()
        name = getattr(made, "name", type(made).__name__)
        if name in BUILT_IN:
            raise BackendError(f"device type {name!r} already has an owner, the core: choose another name")
        if name in table:
            raise BackendError(
                f"device type {name!r} already has an owner, {table[name].distribution!r}: one device type, one backend"
            )
        with journal.Recording() as recording:
            try:
                check_backend(name, made)
                if plugin is not None:
                    journal.note(register(name, plugin))
                    declare_operators(plugin)
                kernels = checked_kernels(made)
            except BaseException:
                recording.undo()
                raise
        added = Plugin(name, None, type(made).__module__, made, kernels, steps=["added by hand"], plugin=plugin)
        table[name] = added

    def remove() -> None:
        with _loading:
            if _table().get(name) is added:
                del _table()[name]
                forget_instances(name)
                recording.undo()
                invalidate()

    invalidate()  # what failed for want of a reference device may work now
    journal.note(remove)
    return remove


def missing(name: str) -> str:
    """What to say when no plugin owns a device type."""
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
    """What to say when there is no backend at all and no device was named."""
    if allowed_names() is not None:
        return f"no backend can be seen: {ENVIRONMENT}={os.environ[ENVIRONMENT]!r} lets none through that is installed"
    command = names.install_command()
    return "no backend is installed, and the core has no kernels of its own" + (
        f". Install one: {command}" if command else ""
    )


# -- choosing ---------------------------------------------------------------------------------------------------------
def working() -> list[tuple[Plugin, Backend]]:
    """Every plugin that loads, with its backend."""
    found = []
    for plugin in plugins().values():
        try:
            found.append((plugin, load(plugin)[0]))
        except BackendError:
            continue
    return found


def reference_device() -> device:
    """The device on the host's memory that others fall back to."""
    for _, made in working():
        if made.capabilities.host:
            return device(made.name, 0)
    if not plugins():
        raise BackendError(nothing_installed())
    broken = [f"{name} failed to load: {type(e).__name__}: {e}" for name, e in failures().items()]
    command = names.install_command()
    raise BackendError(
        "no backend on the host's memory works"
        + (f" ({'; '.join(broken)}; `candelabra doctor` shows the traceback)" if broken else "")
        + (f". Install one: {command}" if command and not broken else "")
    )


def default_device() -> device:
    """Where tensors go when nobody says where: the reference device, else the first device that works."""
    try:
        return reference_device()
    except BackendError:
        for plugin, made in working():
            if device_count(made):
                return device(plugin.name, 0)
        raise


def accelerator() -> str:
    """The first device type that works and is not the host's; else the default's."""
    for _, made in working():
        if not made.capabilities.host and device_count(made):
            return made.name
    return default_device().type


def device_count(made: Backend) -> int:
    """How many devices a backend offers; 0 when it says that there are none, or fails to say."""
    try:
        return len(made.devices())
    except Exception:
        return 0


def backends_with_kernel(operator: str) -> list[str]:
    """The device types that load and have a kernel of their own for an operator."""
    return [plugin.name for plugin, _ in working() if operator in plugin.kernels]


def failures() -> dict[str, BaseException]:
    """Device types whose plugin failed to load, with the reason."""
    return {name: p.error for name, p in plugins().items() if p.error is not None}
