"""Which generators make the samples of an operator or of a public callable: those of this package, then of plugins.

The key is an operator's own name, or a public name: ``"stack"``, ``"linalg.svd"``, of what is a method only
``"Tensor.to"``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final, TypeVar

from candelabra.dtypes import dtype

from candelabra_conformance.samples.maker import Maker
from candelabra_conformance.samples.sample import Sample

Generator = Callable[[Maker], Iterator[Sample]]
G = TypeVar("G", bound=Generator)

INPUTS: Final[dict[str, list[Generator]]] = {}
MISTAKES: Final[dict[str, list[Generator]]] = {}
SPECIAL: Final[dict[str, list[Generator]]] = {}
DOMAINS: Final[dict[str, tuple[float, float]]] = {}
ONLY: Final[dict[str, Callable[[dtype], bool]]] = {}
DRAWS: Final[set[str]] = set()


def _marks(table: dict[str, list[Generator]], operators: tuple[str, ...]) -> Callable[[G], G]:
    def mark(generator: G) -> G:
        for name in operators:
            table.setdefault(name, []).append(generator)
        return generator

    return mark


def inputs(*operators: str) -> Callable[[G], G]:
    """Mark a generator of ordinary calls of these operators; ``t.operator`` says which one it is asked for."""
    return _marks(INPUTS, operators)


def mistakes(*operators: str) -> Callable[[G], G]:
    """Mark a generator of calls that must be refused, with the same class and words on every device."""
    return _marks(MISTAKES, operators)


def special(*operators: str) -> Callable[[G], G]:
    """Mark a generator of calls on NaN, infinities, signed zeros, extremes of the dtype."""
    return _marks(SPECIAL, operators)


def domain(low: float, high: float, *operators: str) -> None:
    """Let ordinary floating values of these operators lie between ``low`` and ``high``: where they are smooth."""
    DOMAINS.update(dict.fromkeys(operators, (low, high)))


def only(takes: Callable[[dtype], bool], *operators: str) -> None:
    """Say which dtypes these operators are defined for, where their records leave it to the fronts."""
    ONLY.update(dict.fromkeys(operators, takes))


def draws(*names: str) -> None:
    """Say that public callables without a parameter ``generator`` draw random numbers: their calls are seeded."""
    DRAWS.update(names)


def defined(operator: str, d: dtype) -> bool:
    """Whether an operator has a meaning in a dtype, as far as :func:`only` was told."""
    load()
    return operator not in ONLY or ONLY[operator](d)


@cache
def load() -> None:
    """Import every family of this package once."""
    package = importlib.import_module("candelabra_conformance.samples")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
