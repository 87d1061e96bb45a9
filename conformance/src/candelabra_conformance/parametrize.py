"""Run tests of users' programs once per installed device.

    @each_device()
    def test_it_runs(device): ...

The test of a device without a driver, or with a broken plugin, is skipped with the reason; the collection never fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
from candelabra.errors import BackendError
from candelabra.library import plugins

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Installed:
    """A device, and the reason why it cannot be used (empty if it can)."""

    name: str
    missing: str = ""

    def __str__(self) -> str:
        return self.name


def installed() -> list[Installed]:
    """Return every device of every installed backend, with one entry and the reason for a backend without devices."""
    found: list[Installed] = []
    for name, plugin in plugins.plugins().items():
        try:
            made, _ = plugins.load(plugin)
            count = len(made.devices())
        except Exception as error:
            words = str(error) if isinstance(error, BackendError) else f"{type(error).__name__}: {error}"
            found.append(Installed(name, words))
            continue
        found += [Installed(f"{name}:{i}") for i in range(count)]
        if not count:
            found.append(Installed(name, f"backend {name!r} offers no device here"))
    return found


def devices() -> list[str]:
    """Return the installed devices that work, as ``type:index``, in alphabetical order of their types."""
    return [device.name for device in installed() if not device.missing]


def each_device(
    *, only: Collection[str] = (), excluding: Collection[str] = (), argument: str = "device", first: bool = False
) -> Callable[[F], F]:
    """Decorate a test to run once per device, whose name is passed as ``argument``.

    ``only`` and ``excluding`` contain device types or devices (``"acme"``, ``"acme:1"``); ``first`` selects one device
    of each type. Test ids are the devices' names. A device in ``only`` that is not installed is skipped. Raises
    ``ValueError`` for a name in both lists.
    """
    both = set(only) & set(excluding)
    if both:
        raise ValueError(f"each_device(): {sorted(both)[0]!r} is in both only= and excluding=")
    chosen = [d for d in installed() if (not only or _named(d, only)) and not _named(d, excluding)]
    if first:
        kinds = dict.fromkeys(d.name.partition(":")[0] for d in chosen)
        chosen = [next(d for d in chosen if d.name.partition(":")[0] == kind) for kind in kinds]
    chosen += [Installed(name, plugins.missing(name)) for name in only if not any(_named(d, [name]) for d in chosen)]
    if not chosen:
        chosen = [Installed("none", plugins.nothing_installed())]
    return pytest.mark.parametrize(argument, [_parameter(d) for d in chosen])


def _named(device: Installed, names: Collection[str]) -> bool:
    return device.name in names or device.name.partition(":")[0] in names


def _parameter(device: Installed) -> Any:
    marks = [pytest.mark.skip(reason=device.missing)] if device.missing else []
    return pytest.param(device.name, id=device.name, marks=marks)
