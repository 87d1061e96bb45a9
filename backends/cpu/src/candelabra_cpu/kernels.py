"""The CPU's kernel table: the Array API's kernels over NumPy, made quiet, and what NumPy and SciPy do better.

Every module of this package that has a dictionary ``KERNELS`` adds it to the table; there is no list of them to keep.
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
from candelabra_cpu.quiet import beside_numbers, quiet, quiet1, quiet2, quiet_into

Kernel = Callable[..., Any]
ARITHMETIC = ("add", "sub", "mul", "div", "floor_divide", "trunc_divide", "remainder", "fmod", "pow")
"""What takes a Python number for either operand and gives the dtype of the other."""


def table() -> dict[str, Kernel]:
    """``{operator: kernel}``."""
    from candelabra_cpu.backend import TO_NUMPY

    base = candelabra_arrayapi.kernels(np, TO_NUMPY)
    kernels = {
        **{name: _quieted(kernel) for name, kernel in base.items()},
        **{
            name + "_": quiet_into(kernel)
            for name, kernel in base.items()
            if isinstance(kernel, np.ufunc) and _same_dtype(kernel)
        },
        **joined(import_module(f"candelabra_cpu.{m.name}") for m in iter_modules(candelabra_cpu.__path__)),
    }
    return kernels | {name: beside_numbers(kernels[name]) for name in ARITHMETIC}


def joined(modules: Iterable[ModuleType]) -> dict[str, Kernel]:
    """The ``KERNELS`` of modules in one dictionary. Raises ``TypeError`` where two of them name the same kernel."""
    kernels: dict[str, Kernel] = {}
    origin: dict[str, str] = {}
    for module in modules:
        for name, kernel in getattr(module, "KERNELS", {}).items():
            if name in kernels:
                raise TypeError(f"kernel '{name}' is in {origin[name]} and in {module.__name__}: one of them has to go")
            kernels[name], origin[name] = kernel, module.__name__
    return kernels


def _quieted(kernel: Kernel) -> Kernel:
    if isinstance(kernel, np.ufunc):
        return quiet1(kernel) if kernel.nin == 1 else quiet2(kernel)
    return quiet(kernel)


def _same_dtype(ufunc: np.ufunc) -> bool:
    return (
        any(t.split("->")[0] == "f" * ufunc.nin and t.split("->")[1] == "f" for t in ufunc.types)
        or "ii->i" in ufunc.types
    )
