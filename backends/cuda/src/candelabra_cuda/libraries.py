"""Kernels over CuPy whose libraries accept or compute less than the standard's functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from candelabra_cuda.arrays import aligned

Kernel = Callable[..., Any]


def corrected(kernels: Mapping[str, Kernel], xp: Any) -> dict[str, Kernel]:
    """Return the kernels of a namespace, with those replaced whose library needs other arguments."""
    fft_r2c, slogdet, solve_ex = (kernels[name] for name in ("fft_r2c", "linalg_slogdet", "linalg_solve_ex"))

    def aligned_fft_r2c(x: Any, *options: Any) -> Any:
        return fft_r2c(aligned(x), *options)

    def wide_slogdet(x: Any) -> tuple[Any, Any]:
        """cuBLAS takes a complex pivot for 0 if its square is smaller than the dtype represents. In complex128 the
        squares of all numbers of complex64 are larger than 0.
        """
        if x.dtype != xp.complex64:
            result: tuple[Any, Any] = slogdet(x)
            return result
        sign, logarithm = slogdet(xp.astype(x, xp.complex128))
        return xp.astype(sign, xp.complex64), xp.astype(logarithm, xp.float32)

    def solve_without_columns(a: Any, b: Any) -> tuple[Any, Any]:
        """CuPy divides by the number of right sides of a batch."""
        if b.ndim < 2 or b.shape[-1]:
            result: tuple[Any, Any] = solve_ex(a, b)
            return result
        column, info = solve_ex(a, xp.zeros((*b.shape[:-1], 1), dtype=b.dtype))
        return column[..., :0], info

    replaced: dict[str, Kernel] = {
        "fft_r2c": aligned_fft_r2c,
        "linalg_slogdet": wide_slogdet,
        "linalg_solve_ex": solve_without_columns,
    }
    return {**kernels, **replaced}
