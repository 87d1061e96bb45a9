"""The index of this package: the module of each kernel and of each expression, known without importing it.

``tools/generate`` writes it from the syntax trees of the folders ``kernels`` and ``expressions``. A module is imported
when a call needs one of its kernels or expressions for the first time.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final

try:
    from candelabra_clike._index.tables import EXPRESSIONS, KERNELS
except ModuleNotFoundError as error:
    raise ImportError(
        "the index of kernels, candelabra_clike/_index, is missing: in a checkout run `make index`"
    ) from error

_TABLES: Final = {"kernels": (KERNELS, ("KERNELS", "FACTORIES")), "expressions": (EXPRESSIONS, ("EXPRESSIONS",))}
KERNELS_IN: Final = {name: module for module, names in KERNELS.items() for name in names.split()}
"""Kernel → the module in the folder ``kernels`` that defines it. Pointwise operators have expressions instead."""
EXPRESSIONS_IN: Final = {name: module for module, names in EXPRESSIONS.items() for name in names.split()}
"""Pointwise operator → the module in the folder ``expressions`` that defines its expressions."""


class StaleKernelIndex(RuntimeError):
    """The index and a module differ in their kernels or expressions."""


@lru_cache(None)
def loaded(folder: str, name: str) -> ModuleType:
    """Import and return a module of a folder. Raises :class:`StaleKernelIndex` if its tables differ from the index."""
    index, tables = _TABLES[folder]
    module = import_module(f"candelabra_clike.{folder}.{name}")
    defined: set[str] = {key for table in tables for key in getattr(module, table, {})}
    differing = sorted(defined ^ set(index[name].split()))
    if differing:
        raise StaleKernelIndex(
            f"the index of kernels is not current: {differing[0]!r} is in only one of it and {module.__name__}. In a "
            "checkout run `make index`"
        )
    return module


def kernel(name: str, engines: Any) -> Any:
    """Return a kernel of the folder ``kernels`` for devices with these engines."""
    module = loaded("kernels", KERNELS_IN[name])
    factories = getattr(module, "FACTORIES", {})
    return factories[name](engines) if name in factories else module.KERNELS[name]
