"""What plugins bring beside kernels: subcommands of ``candelabra``, samples for the conformance suite."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from candelabra._annotations import Any, NamedTuple
from candelabra.plugins import registry

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
    from candelabra.plugins.loading import call_hook

    answers = []
    for plugin, _ in registry.working():
        if plugin.plugin is None:
            continue
        try:
            brought = call_hook(plugin.plugin, hook)
            if brought is not None and not isinstance(brought, Mapping):
                raise TypeError(f"plugin {plugin.name!r}: {hook}() returned {brought!r}, not a mapping")
            answers += [(plugin.name, key, value) for key, value in (brought or {}).items()]
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            problems[plugin.name] = error
    problems.update({name: error for name, error in registry.failures().items() if name not in problems})
    return answers
