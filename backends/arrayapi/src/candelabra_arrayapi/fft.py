"""Discrete Fourier transforms by the standard's extension ``fft``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Ints = tuple[int, ...]


def kernels(xp: Any) -> dict[str, Callable[..., Any]]:
    """Return the kernels over the namespace ``xp``; an empty table if it lacks the extension ``fft``."""

    def fft_c2c(x: Any, dim: Ints, norm: str, forward: bool) -> Any:
        transform = xp.fft.fftn if forward else xp.fft.ifftn
        return transform(x, axes=dim, norm=norm)

    def fft_r2c(x: Any, dim: Ints, norm: str, onesided: bool) -> Any:
        if onesided:
            return xp.fft.rfftn(x, axes=dim, norm=norm)
        return xp.fft.fftn(xp.astype(x, xp.result_type(x.dtype, xp.complex64)), axes=dim, norm=norm)

    def fft_c2r(x: Any, dim: Ints, norm: str, size: int) -> Any:
        sizes = (*(x.shape[d] for d in dim[:-1]), size)
        return xp.fft.irfftn(x, s=sizes, axes=dim, norm=norm)

    return {"fft_c2c": fft_c2c, "fft_r2c": fft_r2c, "fft_c2r": fft_c2r} if getattr(xp, "fft", None) else {}
