"""The command that this distribution adds to ``candelabra``. ``candelabra --help`` imports this module and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from candelabra.backend import hookimpl


@hookimpl
def candelabra_commands() -> Mapping[str, Callable[[list[str]], int]]:
    """Return ``candelabra run``."""
    return {"run": _run}


def _run(arguments: list[str]) -> int:
    """run a program on several ranks"""
    from candelabra.distributed.run import main

    return main(arguments)
