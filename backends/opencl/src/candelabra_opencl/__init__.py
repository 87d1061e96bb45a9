"""The OpenCL devices of candelabra, implemented with PyOpenCL."""

from __future__ import annotations

from candelabra.backend import hookimpl


class _OpenCLPlugin:
    @hookimpl
    def candelabra_backend(self) -> object:
        from candelabra_opencl.backend import OpenCLBackend

        return OpenCLBackend()


plugin = _OpenCLPlugin()
