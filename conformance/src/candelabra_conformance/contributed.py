"""The commands that this package adds to ``candelabra``. Their modules are imported when a command is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from candelabra.backend import hookimpl


@hookimpl
def candelabra_commands() -> Mapping[str, Callable[[list[str]], int]]:
    """Return ``candelabra conformance`` and ``candelabra new-backend``."""
    return {"conformance": _conformance, "new-backend": _new_backend}


def _conformance(arguments: list[str]) -> int:
    """run the conformance suite against a device"""
    from candelabra_conformance.cli import main

    return main(arguments)


def _new_backend(arguments: list[str]) -> int:
    """write the package of a new backend"""
    from candelabra_conformance.scaffold.write import main

    return main(arguments)
