"""The expressions of pointwise operators, shared by all dialects.

An entry is ``operator: {kind: function}``. The kind is the name of a dtype (``float16``), a value type (``f32``), a
group of types (``float``, ``signed``, ``unsigned``, ``integer``, ``complex``), ``bool``, ``number`` (neither complex
nor bool) or ``any``. The most specific kind of the entry applies.

The function returns the value of an element in the language of :mod:`candelabra_clike.language`. It has the parameters
that it needs, by these names:

- ``a``, ``b`` …: the operands (tensors, or numbers combined with them) in the order of the record;
- a plain parameter of the record that is a number (``float``, ``Number``), as a value, or None if the call has None;
- a plain parameter of type ``str``, ``bool`` or ``int``, as it is. It is a constant of the kernel, which is compiled
  again for every value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype

from candelabra_clike import tables
from candelabra_clike.language import call
from candelabra_clike.types import CTYPES

Expression = Callable[..., Any]
"""A function that returns a :class:`~candelabra_clike.language.Value`, or a number for the same result everywhere."""
Entry = Mapping[str, Expression]


def function_of_one(name: str) -> Expression:
    """Return the expression that calls a library function with one operand."""
    return lambda a: call(name, a)


def function_of_two(name: str) -> Expression:
    """Return the expression that calls a library function with two operands."""
    return lambda a, b: call(name, a, b)


class Entries(Mapping[str, Entry]):
    """The entries of all modules. The module of an operator is imported when its entry is looked up."""

    def __getitem__(self, name: str) -> Entry:
        entry: Entry = tables.loaded("expressions", tables.EXPRESSIONS_IN[name]).EXPRESSIONS[name]
        return entry

    def __iter__(self) -> Iterator[str]:
        return iter(tables.EXPRESSIONS_IN)

    def __len__(self) -> int:
        return len(tables.EXPRESSIONS_IN)


def is_contracted(operator: str) -> bool:
    """Return whether ``a * b + c`` may be fused in an operator's kernel.

    That holds for the operators of modules with ``CONTRACTED = True``, whose expressions are polynomials.
    """
    home = tables.EXPRESSIONS_IN.get(operator)
    return home is not None and getattr(tables.loaded("expressions", home), "CONTRACTED", False)


def kinds(d: dtype) -> tuple[str, ...]:
    """Return the kinds that apply to a dtype, the most specific one first."""
    value = CTYPES[d].value
    if d.category == BOOL:
        return ("bool", "any")
    if d.category == COMPLEX:
        return (d.name, value, "complex", "any")
    if d.category == FLOATING:
        return (d.name, value, "float", "number", "any")
    return (d.name, value, "signed" if d.is_signed else "unsigned", "integer", "number", "any")


def expression_for(entry: Entry, d: dtype) -> Expression | None:
    """Return the expression of an entry for a dtype, or None."""
    return next((entry[kind] for kind in kinds(d) if kind in entry), None)


EXPRESSIONS: Final = Entries()
