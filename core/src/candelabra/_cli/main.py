"""The console script. It imports a subcommand when it is called; a plugin that fails is reported and is not fatal."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from candelabra._annotations import Final
from candelabra._version import __version__

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "devices": ("candelabra._cli.devices", "list the devices of every backend that is installed"),
    "doctor": ("candelabra._cli.doctor", "check every plugin: found, imported, version window, devices, tracebacks"),
    "ops": (
        "candelabra._cli.ops",
        "list the operators and how each device serves them; --public lists the public names",
    ),
    "explain": (
        "candelabra._cli.explain",
        "show step by step how a device serves an operator or a public name",
    ),
}
"""Subcommand → its module, with ``add_arguments(parser)`` and ``run(arguments) -> exit status``, and its help."""


BROKEN_PIPE: Final = 141
"""The exit status if the reader of the output has closed the pipe: 128 plus the number of SIGPIPE, as in shells."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand and return its exit status: 0 for success, 1 for a failure, 2 for wrong usage.

    If the reader closes the pipe (``candelabra doctor | head``), the command ends without a traceback.
    """
    try:
        status = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes the buffer at exit, which must not fail either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    return status


def _run(arguments: list[str]) -> int:
    name = next((a for a in arguments if not a.startswith("-")), None)
    if name is not None and name not in COMMANDS and arguments[0] == name:
        return _plugin_command(name, arguments[1:])
    parser = _parser(name)
    parsed = parser.parse_args(arguments)
    if parsed.command is None:
        parser.print_help()
        return 2
    return int(import_module(COMMANDS[parsed.command][0]).run(parsed))


def _parser(name: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="candelabra",
        description="Inspect the devices, plugins and operators of this installation.",
        epilog="Plugins of devices may have further commands, which `candelabra doctor` lists.",
    )
    parser.add_argument("--version", action="version", version=f"candelabra {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command, (module, text) in COMMANDS.items():
        added = commands.add_parser(command, help=text, description=text[0].upper() + text[1:] + ".")
        if command == name:
            import_module(module).add_arguments(added)
    if name is None:
        for command, text in _plugin_commands().items():
            commands.add_parser(command, help=text)
    return parser


def _plugin_commands() -> dict[str, str]:
    """Return the commands of tools, each with the first line of its documentation. No device plugin is imported."""
    from candelabra._plugins.contributions import commands

    found, _ = commands(tuple(COMMANDS), tools=True)
    return {name: (function.__doc__ or "a command of a plugin").partition("\n")[0] for name, function in found.items()}


def _plugin_command(name: str, arguments: list[str]) -> int:
    from candelabra._plugins.contributions import commands
    from candelabra._plugins.describing import summary

    found, problems = commands(tuple(COMMANDS), name)
    if name in found:
        try:
            return int(found[name](arguments) or 0)
        except BrokenPipeError:  # the reader of the output has closed the pipe, which main() reports
            raise
        except Exception:
            import traceback

            print(f"candelabra: the command {name!r} of a plugin failed:", file=sys.stderr)
            traceback.print_exc()
            return 1
    known = ", ".join([*COMMANDS, *sorted(found)])
    print(f"candelabra: there is no command {name!r}; there are {known}", file=sys.stderr)
    for plugin, error in problems.items():
        print(f"  plugin {plugin!r} has no commands: {summary(error)}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
