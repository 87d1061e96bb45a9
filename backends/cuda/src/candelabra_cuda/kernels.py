"""The kernel table of CUDA: kernels of candelabra-arrayapi over CuPy, those of candelabra-clike, and matrix products by
cuBLAS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import candelabra_arrayapi
from candelabra_clike import convolution_products
from candelabra_clike.kernels import attention
from candelabra_clike.kernels.matmul import LINEAR

from candelabra_cuda.arrays import TO_NUMPY, over_cupy
from candelabra_cuda.blas import CublasMatmul, multiplying
from candelabra_cuda.libraries import corrected

Kernel = Callable[..., Any]


def table(c_kernels: Mapping[str, Kernel], cublas: bool = True) -> dict[str, Kernel]:
    """Return ``{operator: kernel}``.

    ``c_kernels`` are those of candelabra-clike, which include all with a device argument.
    """
    from array_api_compat import cupy as xp  # adds the names of the standard that CuPy lacks
    from candelabra.library import DEVICE, OPERATORS

    kernels = candelabra_arrayapi.kernels(xp, TO_NUMPY, missing=("linalg.eig", "linalg.eigvals"))
    cupy_kernels = {
        name: over_cupy(kernel)
        for name, kernel in corrected(kernels, xp).items()
        if name in OPERATORS and all(p.kind != DEVICE for p in OPERATORS[name].schema.parameters)
    }
    if cublas:  # the composites of linear layers multiply by cuBLAS
        c_kernels = {name: kernel for name, kernel in c_kernels.items() if name not in LINEAR}
    return {name: KernelWithFallback(kernel, cupy_kernels.get(name)) for name, kernel in c_kernels.items()} | {
        **{name: kernel for name, kernel in cupy_kernels.items() if name not in c_kernels},
        **(_cublas_kernels(c_kernels.get("matmul", cupy_kernels.get("matmul"))) if cublas else {}),
    }


def _cublas_kernels(other: Kernel | None) -> dict[str, Kernel]:
    """Return the kernels that use matrix products. ``other`` multiplies dtypes that cuBLAS does not support."""
    products = attention.kernels(multiplying) | convolution_products.kernels(multiplying)
    return {"matmul": CublasMatmul(other), **products}


class KernelWithFallback:
    """A kernel in C, with a kernel over CuPy for the dtypes that the former declines."""

    def __init__(self, c_kernels: Kernel, other: Kernel | None) -> None:
        self._kernel = c_kernels
        self._fallback = other

    def for_dtype(self, d: Any) -> Kernel | None:
        """Return the function for a dtype."""
        choose = getattr(self._kernel, "for_dtype", None)
        function: Kernel | None = self._kernel if choose is None else choose(d)
        return self._fallback if function is None else function

    def __call__(self, *args: Any) -> Any:
        return self._kernel(*args)
