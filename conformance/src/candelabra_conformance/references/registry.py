"""Which function answers for an operator or a public callable where no device may: NumPy's, SciPy's, or a formula."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeVar

Reference = Callable[..., Any]
R = TypeVar("R", bound=Reference)

REFERENCES: Final[dict[str, Reference]] = {}
"""``{operator or public callable: function}``. The arguments come by position as the operator's record declares them,
those of a public callable as its samples give them."""
EXTENDED: Final[set[str]] = set()
"""Operators whose reference computes in ``np.longdouble`` when it is given such arrays: it judges float64 results."""
AS_GIVEN: Final[set[str]] = set()
"""Operators whose result hangs on the dtype itself (the next number, a rounded quotient): their reference is asked in
the operands' own dtype, and never in a wider one. That of a public callable then says the dtype of the result, too."""


def reference(*operators: str, extended: bool = False, as_given: bool = False) -> Callable[[R], R]:
    """Mark the function that answers for these operators.

    ``extended``: it keeps the precision of ``np.longdouble`` and ``np.clongdouble`` arguments; ``as_given``: it must
    be asked in the operands' own dtype. Raises ``ValueError`` when an operator has a reference already: two would have
    to be compared with each other first.
    """

    def mark(function: R) -> R:
        references(dict.fromkeys(operators, function), extended, as_given)
        return function

    return mark


def references(functions: Mapping[str, Reference], extended: bool = False, as_given: bool = False) -> None:
    """Give many operators their references at once, where they are somebody's functions as they stand.

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
