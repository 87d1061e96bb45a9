"""The registry of references: functions of NumPy or SciPy, or formulas, that compute an operator without a device."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeVar

Reference = Callable[..., Any]
R = TypeVar("R", bound=Reference)

REFERENCES: Final[dict[str, Reference]] = {}
"""``{operator or public callable: function}``. Arguments are passed by position as the operator's record declares them,
those of a public callable as its samples pass them."""
EXTENDED: Final[set[str]] = set()
"""Operators whose reference computes in ``np.longdouble`` for such arrays; it checks float64 results."""
AS_GIVEN: Final[set[str]] = set()
"""Operators whose result depends on the dtype itself (the next number, a rounded quotient): their reference is called
in the operands' own dtype, and never in a wider one. That of a public callable then defines the dtype of the result,
too."""

ROUNDED_DRAWS: Final[set[str]] = set()
"""Operators that draw by functions of a library, such as quantiles: those of another library may be rounded otherwise.
All other draws have one right value."""


def reference(
    *operators: str, extended: bool = False, as_given: bool = False, rounded_draws: bool = False
) -> Callable[[R], R]:
    """Mark a function as the reference of these operators.

    ``extended``: it keeps the precision of ``np.longdouble`` and ``np.clongdouble`` arguments; ``as_given``: it must be
    called in the operands' own dtype; ``rounded_draws``: the draws are values of a library's functions. Raises
    ``ValueError`` if an operator already has a reference.
    """

    def mark(function: R) -> R:
        references(dict.fromkeys(operators, function), extended, as_given)
        if rounded_draws:
            ROUNDED_DRAWS.update(operators)
        return function

    return mark


def references(functions: Mapping[str, Reference], extended: bool = False, as_given: bool = False) -> None:
    """Register functions of other libraries as the references of many operators.

    Raises ``ValueError`` as :func:`reference` does.
    """
    for operator, function in functions.items():
        if REFERENCES.get(operator, function) is not function:
            raise ValueError(f"reference({operator!r}): {operator} has a reference already, {REFERENCES[operator]!r}")
    REFERENCES.update(functions)
    if extended:
        EXTENDED.update(functions)
    if as_given:
        AS_GIVEN.update(functions)


@cache
def load() -> None:
    """Import every family of this package once."""
    package = importlib.import_module("candelabra_conformance.references")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
