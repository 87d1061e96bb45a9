"""What this distribution adds to ``candelabra``: the command ``run``, and operators with their samples.

``candelabra --help`` imports this module and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from candelabra.backend import hookimpl


@hookimpl
def candelabra_commands() -> Mapping[str, Callable[[list[str]], int]]:
    """Return ``candelabra run``."""
    return {"run": _run}


@hookimpl
def candelabra_operators() -> None:
    """Declare the collectives: the import does it."""
    import candelabra_distributed.collectives  # noqa: F401


@hookimpl
def candelabra_samples() -> Mapping[str, Any]:
    """Return the samples of the collectives for the conformance suite, which alone calls this."""
    from candelabra_distributed.samples import SAMPLES

    return SAMPLES


def _run(arguments: list[str]) -> int:
    """run a program on several ranks"""
    from candelabra.distributed.run import main

    return main(arguments)
