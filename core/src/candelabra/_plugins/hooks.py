"""The hooks that a plugin may implement, as pluggy specifications."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pluggy

from candelabra._annotations import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from candelabra._graph.structure import Graph
    from candelabra.backend import Backend, Kernel

hookspec = pluggy.HookspecMarker("candelabra")
hookimpl = pluggy.HookimplMarker("candelabra")


class PluginHooks:
    """The hooks that the core calls."""

    @hookspec(firstresult=True)
    def candelabra_backend(self) -> Backend:  # type: ignore[empty-body]
        """Return the backend. Its name must be equal to that of the entry point."""

    @hookspec
    def candelabra_kernels(
        self, device_type: str, kernels: Mapping[str, Kernel], every_size: bool
    ) -> Mapping[str, Kernel]:
        """Return kernels for a device type that another distribution owns, ``{operator: function of payloads}``.

        For objects in the entry point group ``candelabra.kernels``. ``kernels`` is what serves so far: the owner's
        table, and over it the contributions of lower precedence. A kernel may call them, for example for small calls.
        With ``every_size``, which the conformance suite asks for, the kernels must serve small calls themselves; they
        are those of the same operators. A kernel that otherwise leaves a dtype to the owner at all sizes has a method
        ``for_dtype``, which returns None.
        Raise ``DeviceUnavailable`` with the reason if this machine lacks something that the kernels need; the device
        then works without them. An implementation may leave out parameters that it does not need.
        """
        return {}

    @hookspec
    def candelabra_compile(self, device_type: str, graph: Graph) -> Callable[..., Any] | None:
        """Return a function that runs a graph on a device type that another distribution owns, or None to decline it.

        For objects in the entry point group ``candelabra.kernels``, which also have ``candelabra_kernels``. They are
        asked in the order in which their kernels serve, and before the owner's ``Backend.compile``, which describes
        the function.
        """
        return None

    @hookspec
    def candelabra_memory(self, device_type: str, release: bool, reset: bool) -> Mapping[str, int]:
        """Return ``allocated``, ``reserved``, ``peak`` … in bytes of the memory of the contributed kernels' results.

        For objects in the entry point group ``candelabra.kernels``, which also have ``candelabra_kernels``. The
        counters are added to those of the owner's ``Backend.memory``. With ``release``, release unused pooled memory
        first; with ``reset``, count the peak from now on. An implementation may leave out parameters.
        """
        return {}

    @hookspec
    def candelabra_kernel_cache(self) -> tuple[str, Path, Sequence[Path]] | None:
        """Return the cache of compiled kernels: a name, the folder, and the files in it that this process has used.

        ``candelabra.compiler.save_cache_artifacts`` reads the files, ``load_cache_artifacts`` adds some. None if
        nothing is kept. The folder may follow the environment variable ``CANDELABRA_CACHE``.
        """
        return None

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
