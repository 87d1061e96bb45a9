"""The registry of the generators of samples for operators and public callables, in this package and in plugins.

The key is an operator's own name, or a public name: ``"stack"``, ``"linalg.svd"``, or ``"Tensor.to"`` for a callable
that is only a method.
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
SIZES: Final[dict[str, list[Generator]]] = {}
BOUNDS: Final[dict[str, list[Generator]]] = {}
DTYPES: Final[dict[Generator, tuple[str, ...]]] = {}
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
    """Mark a generator of ordinary calls of these operators; ``t.operator`` is the name of the current one."""
    return _marks(INPUTS, operators)


def mistakes(*operators: str) -> Callable[[G], G]:
    """Mark a generator of calls that must raise an error of the same class and text on every device."""
    return _marks(MISTAKES, operators)


def special(*operators: str) -> Callable[[G], G]:
    """Mark a generator of calls on NaN, infinities, signed zeros, and the limits of the dtype."""
    return _marks(SPECIAL, operators)


def sizes(*operators: str, dtypes: tuple[str, ...] = ("float32",)) -> Callable[[G], G]:
    """Mark a generator of calls beyond the usual limits of implementations, in these dtypes only: more rows than the
    blocks of a grid, more elements than a buffer.

    The values should be so that the results are exact, because the bound of rounded ones takes further runs of the
    reference.
    """
    return _in_dtypes(_marks(SIZES, operators), dtypes)


def bounds(*operators: str, dtypes: tuple[str, ...] = ("float32",)) -> Callable[[G], G]:
    """Mark a generator of calls with many indices of which one is out of bounds, in these dtypes only."""
    return _in_dtypes(_marks(BOUNDS, operators), dtypes)


def _in_dtypes(mark: Callable[[G], G], dtypes: tuple[str, ...]) -> Callable[[G], G]:
    def declare(generator: G) -> G:
        DTYPES[generator] = dtypes
        return mark(generator)

    return declare


def domain(low: float, high: float, *operators: str) -> None:
    """Limit ordinary floating values of these operators to the range from ``low`` to ``high``, in which they are
    smooth."""
    DOMAINS.update(dict.fromkeys(operators, (low, high)))


def only(takes: Callable[[dtype], bool], *operators: str) -> None:
    """Declare the dtypes of these operators, if their records do not, because the public functions check them."""
    ONLY.update(dict.fromkeys(operators, takes))


def draws(*names: str) -> None:
    """Declare that public callables without a parameter ``generator`` draw random numbers, so that calls are seeded."""
    DRAWS.update(names)


def defined(operator: str, d: dtype) -> bool:
    """Return whether an operator is defined for a dtype, according to the calls of :func:`only`."""
    load()
    return operator not in ONLY or ONLY[operator](d)


@cache
def load() -> None:
    """Import every family of this package once."""
    package = importlib.import_module("candelabra_conformance.samples")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
