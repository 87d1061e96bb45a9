"""The OpenCL devices of candelabra, implemented with PyOpenCL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from candelabra.backend import hookimpl

if TYPE_CHECKING:
    from pathlib import Path


class _OpenCLPlugin:
    @hookimpl
    def candelabra_backend(self) -> object:
        from candelabra_opencl.backend import OpenCLBackend

        return OpenCLBackend()

    @hookimpl
    def candelabra_kernel_cache(self) -> tuple[str, Path, Sequence[Path]] | None:
        from candelabra_opencl.compiling import kept_programs

        cache = kept_programs()
        return ("opencl", cache.folder, cache.in_use()) if cache is not None else None


plugin = _OpenCLPlugin()
