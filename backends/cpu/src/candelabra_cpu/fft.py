"""Discrete Fourier transforms by SciPy: in the dtype of the input, over both cores where there are many lines."""

from __future__ import annotations

from typing import Any

from candelabra_cpu.parallel import CORES
from candelabra_cpu.quiet import quiet

Ints = tuple[int, ...]
LEAST = 1 << 15
"""Points from which on more threads pay."""


def _workers(x: Any) -> int:
    return CORES if x.size >= LEAST else 1


def fft_c2c(x: Any, dim: Ints, norm: str, forward: bool) -> Any:
    """The transform of complex numbers, or its inverse."""
    from scipy import fft

    return (fft.fftn if forward else fft.ifftn)(x, axes=dim, norm=norm, workers=_workers(x))


def fft_r2c(x: Any, dim: Ints, norm: str, onesided: bool) -> Any:
    """The transform of real numbers: half of it, or the whole."""
    from scipy import fft

    return (fft.rfftn if onesided else fft.fftn)(x, axes=dim, norm=norm, workers=_workers(x))


def fft_c2r(x: Any, dim: Ints, norm: str, size: int) -> Any:
    """Real numbers of the half of their spectrum."""
    from scipy import fft

    sizes = (*(x.shape[d] for d in dim[:-1]), size)
    return fft.irfftn(x, s=sizes, axes=dim, norm=norm, workers=_workers(x))


KERNELS: dict[str, Any] = {"fft_c2c": quiet(fft_c2c), "fft_r2c": quiet(fft_r2c), "fft_c2r": quiet(fft_c2r)}
