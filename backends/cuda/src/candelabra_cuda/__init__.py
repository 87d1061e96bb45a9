"""The CUDA devices of candelabra, on CuPy: its memory and its libraries, kernels of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from candelabra.backend import hookimpl

if TYPE_CHECKING:
    from candelabra import Tensor


class _CudaPlugin:
    """The device type ``cuda``."""

    @hookimpl
    def candelabra_backend(self) -> object:
        """The backend; tensors get ``__cuda_array_interface__`` with it."""
        from candelabra_cuda.backend import CudaBackend
        from candelabra_cuda.exchange import install

        install()
        return CudaBackend()


class _RocmPlugin:
    """The device type ``rocm``, untested."""

    @hookimpl
    def candelabra_backend(self) -> object:
        """The backend."""
        from candelabra_cuda.exchange import install
        from candelabra_cuda.rocm import RocmBackend

        install()
        return RocmBackend()


def from_cuda_array_interface(source: Any, device_type: str = "cuda") -> Tensor:
    """A tensor over the memory of an object with ``__cuda_array_interface__``; see docs/cuda.md."""
    from candelabra_cuda.exchange import from_cuda_array_interface

    return from_cuda_array_interface(source, device_type)


plugin = _CudaPlugin()
rocm = _RocmPlugin()
