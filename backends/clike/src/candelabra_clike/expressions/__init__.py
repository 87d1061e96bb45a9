"""What every element becomes, as C: one table of expressions for all dialects, a module a family.

An entry is ``operator: {kind: expression}``. The kind is a value type (``f32``), a group of them (``float``, ``signed``,
``unsigned``, ``integer``, ``complex``), ``bool``, or ``number`` (all but complex and bool) or ``any``; the most special
one that is there serves. In an expression ``{a}``, ``{b}`` … are the operands in the order of the record, ``{T}`` is the
value type, ``{U}`` the unsigned integer of its size, and a parameter's own name in braces is a plain number.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype

from candelabra_clike.types import CTYPES

Entry = dict[str, str]


def _joined() -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for info in iter_modules(__path__, __name__ + "."):
        for name, entry in import_module(info.name).EXPRESSIONS.items():
            if name in found:
                raise TypeError(f"expressions: {name!r} is there twice, the second time in {info.name}")
            found[name] = entry
    return found


def kinds(d: dtype) -> tuple[str, ...]:
    """The kinds under which an expression for a dtype may stand, the most special first."""
    value = CTYPES[d].value
    if d.category == BOOL:
        return ("bool", "any")
    if d.category == COMPLEX:
        return (value, "complex", "any")
    if d.category == FLOATING:
        return (value, "float", "number", "any")
    return (value, "signed" if d.is_signed else "unsigned", "integer", "number", "any")


def expression_for(entry: Entry, d: dtype) -> str | None:
    """The expression of an entry for a dtype, with the types filled in; None where there is none."""
    text = next((entry[kind] for kind in kinds(d) if kind in entry), None)
    if text is None:
        return None
    value = CTYPES[d].value
    return text.replace("{T}", value).replace("{U}", "u" + value[1:])


EXPRESSIONS: dict[str, Entry] = _joined()
