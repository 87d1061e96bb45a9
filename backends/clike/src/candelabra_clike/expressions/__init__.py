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

from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype

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


def _merge_entries() -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for info in iter_modules(__path__, __name__ + "."):
        for name, entry in import_module(info.name).EXPRESSIONS.items():
            if name in entries:
                raise TypeError(f"expressions: {name!r} is defined twice, the second time in {info.name}")
            entries[name] = entry
    return entries


def _contracted_operators() -> frozenset[str]:
    modules = [import_module(info.name) for info in iter_modules(__path__, __name__ + ".")]
    return frozenset(name for m in modules if getattr(m, "CONTRACTED", False) for name in m.EXPRESSIONS)


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


EXPRESSIONS: dict[str, Entry] = _merge_entries()
CONTRACTED = _contracted_operators()
"""The operators of modules with ``CONTRACTED = True``: polynomials, in which ``a * b + c`` may be fused."""
