"""The OpenCL devices of candelabra, through PyOpenCL."""

from __future__ import annotations

from candelabra.backend import hookimpl


class _Plugin:
    @hookimpl
    def candelabra_backend(self) -> object:
        from candelabra_opencl.backend import OpenCLBackend

        return OpenCLBackend()


plugin = _Plugin()
