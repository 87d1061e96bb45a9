"""The CUDA devices of candelabra, on CuPy: its memory and its libraries, kernels of our own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from candelabra.backend import hookimpl

if TYPE_CHECKING:
    from pathlib import Path

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

    @hookimpl
    def candelabra_kernel_cache(self) -> tuple[str, Path, Sequence[Path]] | None:
        """The machine code that is kept from one process to the next."""
        from candelabra_cuda.compiling import usual_cache

        cache = usual_cache()
        return ("cuda", cache.folder, cache.in_use()) if cache is not None else None


class _RocmPlugin:
    """The device type ``rocm``, untested."""

    @hookimpl
    def candelabra_backend(self) -> object:
        """The backend."""
        from candelabra_cuda.exchange import install
        from candelabra_cuda.hip import RocmBackend

        install()
        return RocmBackend()


def from_cuda_array_interface(source: Any, device_type: str = "cuda") -> Tensor:
    """A tensor over the memory of an object with ``__cuda_array_interface__``; see docs/cuda.md."""
    from candelabra_cuda.exchange import from_cuda_array_interface

    return from_cuda_array_interface(source, device_type)


plugin = _CudaPlugin()
rocm = _RocmPlugin()
