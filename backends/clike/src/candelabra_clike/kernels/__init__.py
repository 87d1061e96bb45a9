"""The kernel table. Every module of this package that has a dictionary ``KERNELS`` adds it; there is no list of them.

A kernel is a function on :class:`~candelabra_clike.array.StridedArray` as the backend contract says, or an object with
``for_dtype(dtype)`` that gives such a function, None for dtypes that it does not serve (the operator's body does then,
or the fallback). Kernels with a device argument (``zeros``, random numbers) are in ``FACTORIES`` instead: functions of
``engines``, a function of the device's index, that give the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from candelabra_clike.engine import Engine

Kernel = Callable[..., Any]


def table(engines: Callable[[int], Engine]) -> dict[str, Kernel]:
    """``{operator: kernel}`` for devices whose engines ``engines`` finds by their index.

    Raises ``TypeError`` where two modules name the same kernel.
    """
    kernels: dict[str, Kernel] = {}
    origin: dict[str, str] = {}
    for info in iter_modules(__path__, __name__ + "."):
        module = import_module(info.name)
        found = dict(getattr(module, "KERNELS", {}))
        found |= {name: make(engines) for name, make in getattr(module, "FACTORIES", {}).items()}
        for name, kernel in found.items():
            if name in kernels:
                raise TypeError(f"kernel '{name}' is in {origin[name]} and in {info.name}: one of them has to go")
            kernels[name], origin[name] = kernel, info.name
    return kernels
