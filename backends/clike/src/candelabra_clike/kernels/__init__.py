"""The kernel table. Every module of this package that defines a dictionary ``KERNELS`` contributes it.

A kernel is a function on :class:`~candelabra_clike.array.StridedArray`, as the backend contract describes, or an object
with ``for_dtype(dtype)``, which returns such a function, or None to decline a dtype. Kernels with a device argument
(``zeros``, random numbers) are in dictionaries ``FACTORIES`` instead: functions of ``engines``, which maps a device
index to an engine, that return the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from candelabra_clike.engine import Engine

Kernel = Callable[..., Any]


def table(engines: Callable[[int], Engine]) -> dict[str, Kernel]:
    """Return ``{operator: kernel}`` for devices whose engine is ``engines(index)``.

    Raises ``TypeError`` if two modules define the same kernel.
    """
    kernels: dict[str, Kernel] = {}
    origin: dict[str, str] = {}
    for info in iter_modules(__path__, __name__ + "."):
        module = import_module(info.name)
        module_kernels = dict(getattr(module, "KERNELS", {}))
        module_kernels |= {name: make(engines) for name, make in getattr(module, "FACTORIES", {}).items()}
        for name, kernel in module_kernels.items():
            if name in kernels:
                raise TypeError(f"kernel '{name}' is defined in both {origin[name]} and {info.name}: remove one")
            kernels[name], origin[name] = kernel, info.name
    return kernels
