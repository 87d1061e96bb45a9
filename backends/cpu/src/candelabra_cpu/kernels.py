"""The kernel table of the CPU.

It contains the kernels of :mod:`candelabra_arrayapi` over NumPy, wrapped by :mod:`candelabra_cpu.numpy_kernels`, and
the overrides of this package. Every module of this package that defines a dictionary ``KERNELS`` contributes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

import candelabra_arrayapi
import numpy as np

import candelabra_cpu
from candelabra_cpu.numpy_kernels import (
    binary_kernel,
    inplace_kernel,
    keep_dtype_with_scalars,
    numpy_kernel,
    unary_kernel,
)

Kernel = Callable[..., Any]
ARITHMETIC = ("add", "sub", "mul", "div", "floor_divide", "trunc_divide", "remainder", "fmod", "pow")
"""Operators that accept a Python number for either operand and return the dtype of the other operand."""


def table() -> dict[str, Kernel]:
    """Return ``{operator: kernel}``."""
    from candelabra_cpu.backend import TO_NUMPY

    base = candelabra_arrayapi.kernels(np, TO_NUMPY)
    kernels = {
        **{name: _wrap(kernel) for name, kernel in base.items()},
        **{
            name + "_": inplace_kernel(kernel)
            for name, kernel in base.items()
            if isinstance(kernel, np.ufunc) and _same_dtype(kernel)
        },
        **merge_kernels(import_module(f"candelabra_cpu.{m.name}") for m in iter_modules(candelabra_cpu.__path__)),
    }
    return kernels | {name: keep_dtype_with_scalars(kernels[name]) for name in ARITHMETIC}


def merge_kernels(modules: Iterable[ModuleType]) -> dict[str, Kernel]:
    """Merge the ``KERNELS`` of modules. Raises ``TypeError`` if two modules define the same kernel."""
    kernels: dict[str, Kernel] = {}
    origin: dict[str, str] = {}
    for module in modules:
        for name, kernel in getattr(module, "KERNELS", {}).items():
            if name in kernels:
                raise TypeError(f"kernel '{name}' is defined in both {origin[name]} and {module.__name__}: remove one")
            kernels[name], origin[name] = kernel, module.__name__
    return kernels


def _wrap(kernel: Kernel) -> Kernel:
    if isinstance(kernel, np.ufunc):
        return unary_kernel(kernel) if kernel.nin == 1 else binary_kernel(kernel)
    return numpy_kernel(kernel)


def _same_dtype(ufunc: np.ufunc) -> bool:
    return (
        any(t.split("->")[0] == "f" * ufunc.nin and t.split("->")[1] == "f" for t in ufunc.types)
        or "ii->i" in ufunc.types
    )
