"""What plugins bring beside kernels: subcommands of ``candelabra``, samples for the conformance suite.

A plugin that brings a device is found under its entry point group; one that brings none, a tool, under
``candelabra.plugins``: the entry's value is an object with the same hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from candelabra._annotations import Any, Final, NamedTuple
from candelabra._plugins import registry

GROUP: Final = "candelabra.plugins"

Command = Callable[[list[str]], int | None]


class Contributions(NamedTuple):
    """What came, and from which plugins something did not come, with the reason."""

    found: dict[str, Any]
    problems: dict[str, BaseException]


def commands(taken: tuple[str, ...] = ()) -> Contributions:
    """``{subcommand: function(arguments) -> exit status}``; names in ``taken`` are refused, as is a name twice."""
    found: dict[str, Any] = {}
    problems: dict[str, BaseException] = {}
    for plugin, name, command in _asked("candelabra_commands", problems):
        if name in taken or name in found:
            problems[plugin] = ValueError(
                f"plugin {plugin!r} brings a command {name!r}, but there is one of that name already"
            )
        elif not callable(command):
            problems[plugin] = TypeError(f"plugin {plugin!r}: its command {name!r} is not callable: {command!r}")
        else:
            found[name] = command
    return Contributions(found, problems)


def samples() -> Contributions:
    """``{operator: [what each plugin's sample hook gives for it]}``."""
    found: dict[str, Any] = {}
    problems: dict[str, BaseException] = {}
    for _, operator, generators in _asked("candelabra_samples", problems):
        found.setdefault(operator, []).append(generators)
    return Contributions(found, problems)


def _asked(hook: str, problems: dict[str, BaseException]) -> list[tuple[str, str, Any]]:
    """(plugin, key, value) of the mappings that plugins return; a plugin that raises is one of the problems."""
    from candelabra._plugins.loading import call_hook

    answers = []
    for name, loaded in _objects():
        try:
            brought = call_hook(loaded(), hook)
            if brought is not None and not isinstance(brought, Mapping):
                raise TypeError(f"plugin {name!r}: {hook}() returned {brought!r}, not a mapping")
            answers += [(name, key, value) for key, value in (brought or {}).items()]
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            problems[name] = error
    problems.update({name: error for name, error in registry.failures().items() if name not in problems})
    return answers


def _objects() -> list[tuple[str, Callable[[], Any]]]:
    """(name, function that gives the object with the hooks): tools first, since they need no device."""
    from functools import partial
    from importlib.metadata import entry_points

    tools = [(entry.name, partial(_tool, entry)) for entry in sorted(entry_points(group=GROUP))]
    return tools + [(p.name, partial(getattr, p, "plugin")) for p, _ in registry.working() if p.plugin is not None]


def _tool(entry: Any) -> Any:
    """A plugin without a device, imported and registered at first use."""
    from candelabra._plugins.loading import manager, register

    name = f"{GROUP}:{entry.name}"
    if not manager().has_plugin(name):
        register(name, entry.load())
    return manager().get_plugin(name)
