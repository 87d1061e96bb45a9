"""The CUDA devices of candelabra, on CuPy: its memory and its libraries, kernels of our own."""

from __future__ import annotations

from candelabra.plugins.hooks import hookimpl


class _Plugin:
    @hookimpl
    def candelabra_backend(self) -> object:
        from candelabra_cuda.backend import CudaBackend

        return CudaBackend()


plugin = _Plugin()
