"""Kernels that distributions contribute to devices which another distribution owns.

A distribution registers an object in the entry point group ``candelabra.kernels``. The entry's name is the device type;
the object has the hook ``candelabra_kernels``, and optionally ``precedence``, an int. Contributions load with the
device's backend. Where several have a kernel for one operator, that of the higher precedence is tried first; with equal
precedence, the distribution whose name comes first in the alphabet. What a contributed kernel declines goes to the next
one, and last to the owner's.

A contribution that fails has no effect: the device works without it, and a warning says so once.
"""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from candelabra import _journal as journal
from candelabra._annotations import TYPE_CHECKING, Any, Final
from candelabra._invalidation import invalidate
from candelabra._plugins import registry
from candelabra._plugins.checking import check_kernel
from candelabra._plugins.describing import shown, summary, text_of
from candelabra._plugins.kernels import rebase
from candelabra._plugins.loading import call_hook, has_hook, register
from candelabra._plugins.metadata import entry_points
from candelabra._serving import Chain, KernelLink
from candelabra.errors import BackendError, DeviceUnavailable

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from candelabra.backend import Kernel

GROUP: Final = "candelabra.kernels"
HOOK: Final = "candelabra_kernels"
ENVIRONMENT: Final = "CANDELABRA_CONTRIBUTIONS"
"""The environment variable that limits contributions: ``0`` for none, ``1`` for all (the default), or a comma-separated
list of distributions."""

LOST: Final[dict[str, str]] = {}
"""Device types whose contributions ended the process that loaded them, or hung, with the reason. They are not loaded in
this process."""


@dataclass(eq=False)
class Contribution:
    """The kernels of one distribution for one device type, and their state."""

    device_type: str
    distribution: str
    entry: EntryPoint | None = None
    plugin: Any = None
    """The object with the hook, after it has been imported."""
    precedence: int = 0
    kernels: dict[str, Kernel] = field(default_factory=dict)
    below: Mapping[str, Kernel] = field(default_factory=dict)
    """What serves without this contribution and those above it."""
    error: BaseException | None = None
    traceback: str = ""
    unavailable: str = ""
    """The distribution's reason for having no kernels on this machine."""
    reported: bool = False
    _of_every_size: dict[str, Kernel] | None = None

    @property
    def failure(self) -> str:
        """The class and the message of the error, or an empty text."""
        return "" if self.error is None else summary(self.error)

    @property
    def order(self) -> tuple[int, str]:
        """The sort key: the contribution that serves first comes first."""
        return -self.precedence, self.distribution

    def of_every_size(self) -> dict[str, Kernel]:
        """Return the kernels that serve calls of every size. The hook makes them at the first use.

        Raise BackendError if there are kernels of other operators than :attr:`kernels`, since these would never serve.
        """
        with registry.loading():
            if self._of_every_size is None:
                every = self.from_hook(every_size=True)
                added = sorted(every.keys() - self.kernels.keys())
                if added:
                    raise BackendError(
                        f"distribution {self.distribution!r}: {HOOK}() returned a kernel of {added[0]!r} only with "
                        "every_size=True: return one without it too, whose for_dtype() returns None for the dtypes "
                        "that it leaves to the owner"
                    )
                self._of_every_size = every
            return self._of_every_size

    def from_hook(self, every_size: bool) -> dict[str, Kernel]:
        """Call the hook, and return its kernels after checking them."""
        who = f"distribution {self.distribution!r}"
        arguments = {"device_type": self.device_type, "kernels": self.below, "every_size": every_size}
        returned = call_hook(self.plugin, HOOK, **arguments)
        if not isinstance(returned, Mapping):
            raise BackendError(f"{who}: {HOOK}() returned {shown(returned)}, not a mapping")
        kernels = dict(returned)
        for name, kernel in kernels.items():
            check_kernel(who, name, kernel)
        return kernels

    def fail(self, error: BaseException) -> None:
        """Keep the error of a contribution, which has no effect from now on."""
        self.kernels = {}
        if isinstance(error, DeviceUnavailable):
            self.unavailable = text_of(error)
        else:
            self.error, self.traceback = error, traceback.format_exc()


def is_allowed(contribution: Contribution) -> bool:
    """Return whether the environment lets a distribution contribute kernels."""
    allowed = allowed_distributions()
    return allowed is None or contribution.distribution in allowed


def allowed_distributions() -> set[str] | None:
    """Return the distributions that may contribute kernels, or None if all may."""
    only = os.environ.get(ENVIRONMENT, "1").strip()
    if only in ("0", "1"):
        return set() if only == "0" else None
    return {registry.canonical(name.strip()) for name in only.split(",") if name.strip()}


def installed(device_type: str | None = None) -> list[Contribution]:
    """Return the installed contributions to a device type (None: to all), in alphabetical order, without importing
    them.
    """
    found: dict[tuple[str, str, str], Contribution] = {}
    for entry in entry_points(GROUP):
        if device_type is None or entry.name == device_type:
            distribution = registry.canonical(entry.dist.name) if entry.dist is not None else entry.value
            # One installation may be found through two paths.
            found.setdefault((entry.name, distribution, entry.value), Contribution(entry.name, distribution, entry))
    return [found[mark] for mark in sorted(found)]


def load_contributions(plugin: registry.Plugin) -> None:
    """Load what distributions contribute to a backend that is being loaded, and build the device's table."""
    for each in installed(plugin.name):
        if is_allowed(each):
            _isolated(each, _import, each)
            plugin.contributions.append(each)
    if plugin.contributions:
        build_table(plugin)


def _import(contribution: Contribution) -> None:
    assert contribution.entry is not None
    if contribution.device_type in LOST:
        raise BackendError(LOST[contribution.device_type])
    loaded = contribution.entry.load()
    journal.note(register(f"{GROUP}:{contribution.distribution}:{contribution.device_type}", loaded))
    check_contribution(contribution, loaded)


def check_contribution(contribution: Contribution, loaded: Any) -> None:
    """Check the object that a distribution contributes, and keep it. Raise BackendError if it is none."""
    who = f"distribution {contribution.distribution!r}"
    if not has_hook(loaded, HOOK):
        raise BackendError(f"{who} implements no hook {HOOK}: define it with @candelabra.backend.hookimpl")
    precedence = getattr(loaded, "precedence", 0)
    if type(precedence) is not int:
        raise BackendError(f"{who}: the precedence of its kernels must be an int, got {shown(precedence)}")
    contribution.plugin, contribution.precedence = loaded, precedence


def build_table(plugin: registry.Plugin) -> None:
    """Build a device's table from the kernels of its owner and of the contributions, the lowest precedence first.

    Every hook is called again, since it gets what serves so far. Registered kernels stay in force.
    """
    table: dict[str, Kernel] = dict(plugin.own)
    plugin.contributions.sort(key=lambda each: each.order)
    for each in reversed(plugin.contributions):
        if each.plugin is not None and _isolated(each, _call_hook, each, table):
            for name, kernel in each.kernels.items():
                table[name] = _over(KernelLink(kernel, each), table.get(name))
    rebase(plugin.kernels, table)
    invalidate()


def _call_hook(contribution: Contribution, table: dict[str, Kernel]) -> None:
    """Get and check a distribution's kernels."""
    contribution.below, contribution._of_every_size = MappingProxyType(dict(table)), None
    contribution.kernels = contribution.from_hook(every_size=False)
    contribution.error, contribution.traceback, contribution.unavailable = None, "", ""


def _over(link: KernelLink, below: Kernel | None) -> Chain:
    """Return the entry of a table that tries a contributed kernel before what serves so far."""
    if below is None:
        return Chain([link])
    return Chain([link, *(below.links if isinstance(below, Chain) else [KernelLink(below)])])


def _isolated(contribution: Contribution, step: Callable[..., None], *args: Any) -> bool:
    """Run a step of a contribution, and return whether it succeeded. Of all that it may raise, only Ctrl-C passes."""
    with journal.unrecorded(), journal.Recording() as recording:
        try:
            step(*args)
        except BaseException as error:
            recording.undo()
            if isinstance(error, KeyboardInterrupt):
                raise
            contribution.fail(error)
            return False
    return True


def warn_of_failures(plugin: registry.Plugin) -> None:
    """Warn of each contribution that has failed, once."""
    for each in plugin.contributions:
        if each.error is not None and not each.reported:
            each.reported = True
            warnings.warn(
                f"the kernels that distribution {each.distribution!r} contributes to device type "
                f"{each.device_type!r} failed to load: {each.failure}. The device works without them; "
                "`candelabra doctor` shows the traceback",
                RuntimeWarning,
                stacklevel=2,
            )


def add_contribution(device_type: str, plugin: Any, distribution: str = "") -> Callable[[], None]:
    """Contribute kernels to a device type without an entry point, for tests and notebooks, and return the function
    that removes them.

    ``plugin`` is an object with the hook ``candelabra_kernels``, and ``distribution`` the name under which reports show
    its kernels, by default that of the object's class. Raises ``BackendError``, without side effects, for an unknown
    device type, for one of the core, and for a contribution that is refused or fails.
    """
    if device_type in registry.BUILT_IN:
        raise BackendError(f"device type {device_type!r} belongs to the core, which takes no contributed kernels")
    registry.backend(device_type)
    with registry.loading():
        owner = registry.plugins()[device_type]
        added = Contribution(device_type, registry.canonical(distribution or type(plugin).__name__))
        undo = register(f"{GROUP}:{added.distribution}:{device_type}", plugin)
        try:
            check_contribution(added, plugin)
            owner.contributions.append(added)
            build_table(owner)
            if added.error is not None or added.unavailable:
                raise BackendError(
                    f"distribution {added.distribution!r} contributes no kernels to device type {device_type!r}: "
                    f"{added.failure or added.unavailable}"
                ) from added.error
        except BaseException:
            _remove(owner, added, undo)
            raise

    def remove() -> None:
        with registry.loading():
            _remove(owner, added, undo)

    journal.note(remove)
    return remove


def _remove(owner: registry.Plugin, contribution: Contribution, unregister: Callable[[], None]) -> None:
    """Remove a contribution, and unregister its object unless another contribution has the same one."""
    if contribution in owner.contributions:
        owner.contributions.remove(contribution)
        build_table(owner)
    others = (each for plugin in registry.plugins().values() for each in plugin.contributions)
    if all(each.plugin is not contribution.plugin for each in others):
        unregister()
