"""The hooks that a plugin may implement, as pluggy specifications."""

from __future__ import annotations

from collections.abc import Mapping

import pluggy

from candelabra._annotations import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra.backend import Backend

hookspec = pluggy.HookspecMarker("candelabra")
hookimpl = pluggy.HookimplMarker("candelabra")


class Hooks:
    """The hooks that the core calls."""

    @hookspec(firstresult=True)
    def candelabra_backend(self) -> Backend:  # type: ignore[empty-body]
        """Return the backend. Its name must be equal to that of the entry point."""

    @hookspec
    def candelabra_operators(self) -> None:
        """Declare operators (with ``candelabra.library.operator``). Called once, after the backend has loaded."""

    @hookspec
    def candelabra_commands(self) -> Mapping[str, Any]:
        """Return ``{subcommand: function(list of arguments) -> exit status}`` for the ``candelabra`` command."""
        return {}

    @hookspec
    def candelabra_samples(self) -> Mapping[str, Any]:
        """Return ``{operator: sample generators}`` for the conformance suite."""
        return {}
