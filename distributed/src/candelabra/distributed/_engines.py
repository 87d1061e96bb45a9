"""Find an engine by its name: entry points, pluggy, and the checks at registration."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, NamedTuple

import pluggy
from candelabra.distributed._buffers import host_device
from candelabra.distributed.engine import API_VERSION, DeviceEngine, Engine, EngineUnavailable, Hooks

GROUP: Final = "candelabra.engines"
EXTRAS: Final = {"mpi": 'pip install "candelabra[distributed]"'}
"""What to install for the engines of this repository, if a library is missing."""
_engines: Final[dict[str, Engine | DeviceEngine]] = {}


def names() -> list[str]:
    """Return the names of the installed engines, without importing any."""
    return sorted({*_engines, *(entry.name for entry in entry_points(group=GROUP))})


def engine(name: str) -> Engine | DeviceEngine:
    """Return an engine, which is imported and checked at the first use.

    Raises ``ValueError`` for an engine that is not installed, :class:`EngineUnavailable` for one that cannot work here,
    and ``TypeError`` for one that breaks the contract.
    """
    if name not in _engines:
        _engines[name] = _load(name)
    return _engines[name]


class Engines(NamedTuple):
    """The engine that starts the ranks and serves the host's memory, and those of device types."""

    host: Engine
    devices: dict[str, DeviceEngine]


def engines(text: str, default: str) -> Engines:
    """Return what ``init_process_group`` names: an engine, or several as ``"type:engine,type:engine"``.

    The engine named ``default`` starts the ranks for engines that serve devices only. An engine of the host's memory
    may be named for its device type. Raises ``ValueError`` for an engine that does not serve what it is named for.
    """
    pairs = [(kind, name) for kind, _, name in (part.rpartition(":") for part in text.split(","))]
    host: Engine | None = None
    devices: dict[str, DeviceEngine] = {}
    for kind, name in pairs:
        found = engine(name)
        if isinstance(found, Engine) and (not kind or kind == host_device().type):
            host = found
        elif isinstance(found, DeviceEngine):
            devices |= dict.fromkeys([kind] if kind else found.device_types, found)
        else:
            raise ValueError(
                f"init_process_group: the engine {name!r} serves the host's memory, not that of {kind!r}, which it "
                "copies; name it without a device type"
            )
    if host is None:
        started = engine(default)
        assert isinstance(started, Engine)
        host = started
    return Engines(host, devices)


def add_engine(added: Engine | DeviceEngine) -> None:
    """Add an engine under its name, for tests and for programs that have their own."""
    _check(added.name, added)
    _engines[added.name] = added


def available(name: str) -> bool:
    """Return whether an engine is installed and works here."""
    try:
        engine(name)
    except (ValueError, EngineUnavailable):
        return False
    return True


def _load(name: str) -> Engine | DeviceEngine:
    found: list[EntryPoint] = [entry for entry in entry_points(group=GROUP) if entry.name == name]
    if not found:
        known = ", ".join(repr(each) for each in names())
        raise ValueError(
            f"init_process_group: there is no engine {name!r}; installed are {known}. An engine is a package with an "
            f"entry point in the group {GROUP!r}"
        )
    try:
        plugin = found[0].load()
    except ImportError as error:
        advice = EXTRAS.get(name, "reinstall the package that brings it")
        raise EngineUnavailable(f"the engine {name!r} cannot be imported ({error}): {advice}") from error
    manager = pluggy.PluginManager("candelabra.distributed")
    manager.add_hookspecs(Hooks)
    manager.register(plugin, name)
    manager.check_pending()
    made: Any = manager.hook.candelabra_engine()
    _check(name, made)
    checked: Engine | DeviceEngine = made
    return checked


def _check(name: str, engine: Any) -> None:
    if not isinstance(engine, Engine | DeviceEngine):
        raise TypeError(
            f"engine {name!r}: candelabra_engine() returned {engine!r}, not a candelabra.distributed.engine.Engine or "
            "DeviceEngine"
        )
    if engine.name != name:
        raise TypeError(f"engine {name!r} has the name {engine.name!r}; the two names must be equal")
    if engine.api[0] != API_VERSION[0] or engine.api > API_VERSION:
        raise TypeError(
            f"engine {name!r} was built for API {engine.api[0]}.{engine.api[1]}, candelabra.distributed has "
            f"{API_VERSION[0]}.{API_VERSION[1]}"
        )
