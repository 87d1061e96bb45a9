"""Contributions of plugins other than kernels: subcommands of ``candelabra`` and samples for the conformance suite.

A plugin with a device is registered in the entry point group of backends. A plugin without one, a tool, is registered
in the group ``candelabra.plugins``; the entry's value is an object with the same hooks. ``candelabra --help`` imports
tools only: a distribution with a device registers its commands as a tool, too, to have them listed there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from candelabra._annotations import Any, Final, NamedTuple
from candelabra._plugins import registry
from candelabra._plugins.describing import shown
from candelabra._plugins.metadata import entry_points

GROUP: Final = "candelabra.plugins"


class Contributions(NamedTuple):
    """The contributions, and for each plugin that failed the reason."""

    found: dict[str, Any]
    problems: dict[str, BaseException]


def commands(reserved: tuple[str, ...] = (), only: str | None = None, tools: bool = False) -> Contributions:
    """Return ``{subcommand: function(arguments) -> exit status}``. Reserved and duplicate names are refused.

    ``only``: end the search when this command is found, so that the remaining plugins are not imported. ``tools``: do
    not import plugins of devices.
    """
    found: dict[str, Any] = {}
    problems: dict[str, BaseException] = {}
    for plugin, name, command in _collect("candelabra_commands", problems, tools):
        if name in reserved or name in found:
            problems[plugin] = ValueError(
                f"plugin {plugin!r} has a command {name!r}, but a command of that name exists already"
            )
        elif not callable(command):
            problems[plugin] = TypeError(f"plugin {plugin!r}: its command {name!r} is not callable: {shown(command)}")
        else:
            found[name] = command
            if name == only:
                break
    return Contributions(found, problems)


def samples() -> Contributions:
    """Return ``{operator: [the samples that each plugin's hook returns for it]}``."""
    found: dict[str, Any] = {}
    problems: dict[str, BaseException] = {}
    for _, operator, generators in _collect("candelabra_samples", problems):
        found.setdefault(operator, []).append(generators)
    return Contributions(found, problems)


def _collect(hook: str, problems: dict[str, BaseException], tools: bool = False) -> Iterator[tuple[str, str, Any]]:
    """Yield (plugin, key, value) of the mappings that plugins return, and add plugins that raise to ``problems``."""
    from candelabra._plugins.loading import call_hook

    for name, loaded in _objects(tools):
        try:
            mapping = call_hook(loaded(), hook)
            if mapping is not None and not isinstance(mapping, Mapping):
                raise TypeError(f"plugin {name!r}: {hook}() returned {shown(mapping)}, not a mapping")
            entries = [(name, key, value) for key, value in (mapping or {}).items()]
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            problems[name] = error
            continue
        yield from entries
    problems.update({name: error for name, error in registry.failures().items() if name not in problems})


def _objects(tools: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield (name, function that returns the object with the hooks), tools first, since they need no device.

    With ``tools``, yield only those plugins of devices that are loaded already.
    """
    from functools import partial

    for entry in sorted(entry_points(GROUP)):
        yield entry.name, partial(_tool, entry)
    devices = registry.plugins().values() if tools else (plugin for plugin, _ in registry.working())
    for plugin in devices:
        if plugin.plugin is not None:
            yield plugin.name, partial(getattr, plugin, "plugin")


def _tool(entry: Any) -> Any:
    """Return a plugin without a device, which is imported and registered at the first use."""
    from candelabra._plugins.loading import register

    loaded = entry.load()
    register(f"{GROUP}:{entry.name}", loaded)
    return loaded
