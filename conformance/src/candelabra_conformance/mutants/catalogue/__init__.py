"""The catalogue of mutants, a module per family of faults."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from candelabra_conformance.mutants.mutant import CATALOGUE, Mutant


@cache
def load() -> dict[str, Mutant]:
    """Import every module of this folder once, and return the mutants by name."""
    package = importlib.import_module("candelabra_conformance.mutants.catalogue")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return CATALOGUE
