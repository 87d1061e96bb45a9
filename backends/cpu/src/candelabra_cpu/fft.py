"""Discrete Fourier transforms by SciPy, in the dtype of the input, on several threads for large inputs."""

from __future__ import annotations

from typing import Any

from candelabra import get_num_threads

from candelabra_cpu.numpy_kernels import numpy_kernel

Ints = tuple[int, ...]
GRAIN_SIZE = 1 << 15
"""The number of elements from which several threads are faster."""


def _workers(x: Any) -> int:
    return get_num_threads() if x.size >= GRAIN_SIZE else 1


def fft_c2c(x: Any, dim: Ints, norm: str, forward: bool) -> Any:
    """The complex-to-complex transform, or its inverse."""
    from scipy import fft

    return (fft.fftn if forward else fft.ifftn)(x, axes=dim, norm=norm, workers=_workers(x))


def fft_r2c(x: Any, dim: Ints, norm: str, onesided: bool) -> Any:
    """The real-to-complex transform: half of the spectrum, or all of it."""
    from scipy import fft

    return (fft.rfftn if onesided else fft.fftn)(x, axes=dim, norm=norm, workers=_workers(x))


def fft_c2r(x: Any, dim: Ints, norm: str, size: int) -> Any:
    """The real signal of half a spectrum."""
    from scipy import fft

    sizes = (*(x.shape[d] for d in dim[:-1]), size)
    return fft.irfftn(x, s=sizes, axes=dim, norm=norm, workers=_workers(x))


KERNELS: dict[str, Any] = {
    "fft_c2c": numpy_kernel(fft_c2c),
    "fft_r2c": numpy_kernel(fft_r2c),
    "fft_c2r": numpy_kernel(fft_c2r),
}
