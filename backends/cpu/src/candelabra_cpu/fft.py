"""Discrete Fourier transforms by SciPy, in the dtype of the input.

They run on one thread: SciPy's own threads end before each fork and start again after it, and if two forks follow each
other, as those of a DataLoader's workers do, the second may wait for a thread that missed the signal, forever.
"""

from __future__ import annotations

from typing import Any

from candelabra_cpu.numpy_kernels import numpy_kernel

Ints = tuple[int, ...]


def fft_c2c(x: Any, dim: Ints, norm: str, forward: bool) -> Any:
    """The complex-to-complex transform, or its inverse."""
    from scipy import fft

    return (fft.fftn if forward else fft.ifftn)(x, axes=dim, norm=norm)


def fft_r2c(x: Any, dim: Ints, norm: str, onesided: bool) -> Any:
    """The real-to-complex transform: half of the spectrum, or all of it."""
    from scipy import fft

    return (fft.rfftn if onesided else fft.fftn)(x, axes=dim, norm=norm)


def fft_c2r(x: Any, dim: Ints, norm: str, size: int) -> Any:
    """The real signal of half a spectrum."""
    from scipy import fft

    sizes = (*(x.shape[d] for d in dim[:-1]), size)
    return fft.irfftn(x, s=sizes, axes=dim, norm=norm)


KERNELS: dict[str, Any] = {
    "fft_c2c": numpy_kernel(fft_c2c),
    "fft_r2c": numpy_kernel(fft_r2c),
    "fft_c2r": numpy_kernel(fft_c2r),
}
