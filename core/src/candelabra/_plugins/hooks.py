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
    """What the core asks of plugins."""

    @hookspec(firstresult=True)
    def candelabra_backend(self) -> Backend:  # type: ignore[empty-body]
        """The backend; its name must equal the entry point's."""

    @hookspec
    def candelabra_operators(self) -> None:
        """Declare operators (with ``candelabra.library.operator``); called once, after the backend has loaded."""

    @hookspec
    def candelabra_commands(self) -> Mapping[str, Any]:
        """``{subcommand: function(list of arguments) -> exit status}`` for the ``candelabra`` command."""
        return {}

    @hookspec
    def candelabra_samples(self) -> Mapping[str, Any]:
        """``{operator: sample generators}`` for the conformance suite."""
        return {}
