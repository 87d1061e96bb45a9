"""Fast kernels for the device ``cpu``: the C of :mod:`candelabra_clike`, compiled ahead of time.

This distribution owns no device. It contributes kernels to the one of candelabra-cpu, whose payloads are NumPy arrays,
and leaves small calls to NumPy, see :mod:`candelabra_native.thresholds`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from candelabra.backend import Kernel, hookimpl
from candelabra.errors import DeviceUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from candelabra.graph import Graph


class _NativePlugin:
    """The contribution."""

    @hookimpl
    def candelabra_kernels(
        self, device_type: str, kernels: Mapping[str, Kernel], every_size: bool
    ) -> Mapping[str, Kernel]:
        reason = why_unavailable()
        if reason:
            raise DeviceUnavailable(reason)
        from candelabra_native import threads
        from candelabra_native.kernels import contributed

        threads.connect()
        return contributed(kernels, every_size)

    @hookimpl
    def candelabra_compile(self, device_type: str, graph: Graph) -> Callable[..., tuple[Any, ...]] | None:
        from candelabra_native.fused import compiled

        return compiled(graph)

    @hookimpl
    def candelabra_memory(self, device_type: str, release: bool, reset: bool) -> Mapping[str, int]:
        from candelabra_native.launch import memory

        return memory(release, reset)

    @hookimpl
    def candelabra_kernel_cache(self) -> tuple[str, Path, Sequence[Path]] | None:
        from candelabra_clike.cache import ProgramCache

        from candelabra_native.finding import folder, may_compile

        return ("native", folder(), ProgramCache(folder()).in_use()) if may_compile() else None


def why_unavailable() -> str:
    """Return why no kernel can run here, or an empty text."""
    from candelabra_native.pack.libraries import built
    from candelabra_native.processor import levels

    if not levels():
        return "there are no kernels for this processor: they need Linux on x86-64-v3 (Haswell, Zen) or aarch64"
    try:
        importlib.import_module("candelabra_native.launch._launch")
    except ImportError as error:
        return f"its extension module is not built ({error}): install a wheel, or run `make` in a checkout"
    if set(built()) & set(levels()):
        return ""
    from candelabra_native.finding import may_compile

    if may_compile():
        return ""
    return "it has no kernels: install a wheel, run `make` in a checkout, or allow a compiler (CANDELABRA_COMPILE=1)"


plugin = _NativePlugin()

__all__ = ["plugin"]
