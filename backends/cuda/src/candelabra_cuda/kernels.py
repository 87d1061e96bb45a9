"""CUDA's kernel table: the Array API's kernels over CuPy for breadth, our own in C over those, cuBLAS over both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import candelabra_arrayapi
from candelabra_clike.kernels import attention

from candelabra_cuda.arrays import TO_NUMPY, over_cupy
from candelabra_cuda.blas import Matmul, multiplying

Kernel = Callable[..., Any]


def table(own: Mapping[str, Kernel], cublas: bool = True) -> dict[str, Kernel]:
    """``{operator: kernel}``; ``own`` are those in C. Without a device argument: such kernels are all in C."""
    from array_api_compat import cupy as xp  # CuPy with the names that it lacks of the standard
    from candelabra.library import DEVICE, OPERATORS

    breadth = {
        name: over_cupy(kernel)
        for name, kernel in candelabra_arrayapi.kernels(xp, TO_NUMPY).items()
        if name in OPERATORS and all(p.kind != DEVICE for p in OPERATORS[name].schema.parameters)
    }
    return {name: Preferred(kernel, breadth.get(name)) for name, kernel in own.items()} | {
        **{name: kernel for name, kernel in breadth.items() if name not in own},
        **(_by_cublas(own.get("matmul", breadth.get("matmul"))) if cublas else {}),
    }


def _by_cublas(other: Kernel | None) -> dict[str, Kernel]:
    """What is made of products of matrices; ``other`` multiplies what cuBLAS has no type for."""
    return {"matmul": Matmul(other), **attention.kernels(multiplying)}


class Preferred:
    """A kernel in C, and the one over CuPy for the dtypes that the former does not serve."""

    def __init__(self, own: Kernel, other: Kernel | None) -> None:
        self._own = own
        self._other = other

    def for_dtype(self, d: Any) -> Kernel | None:
        """The function that serves a dtype."""
        choose = getattr(self._own, "for_dtype", None)
        found: Kernel | None = self._own if choose is None else choose(d)
        return self._other if found is None else found

    def __call__(self, *args: Any) -> Any:
        return self._own(*args)
