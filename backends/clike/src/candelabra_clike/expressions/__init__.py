"""The C expressions of pointwise operators, shared by all dialects.

An entry is ``operator: {kind: expression}``. The kind is the name of a dtype (``float16``), a value type (``f32``), a
group of types (``float``, ``signed``, ``unsigned``, ``integer``, ``complex``), ``bool``, ``number`` (neither complex
nor bool) or ``any``. The most specific kind of the entry applies. An expression has these fields:

================  =====================================================================================
``{a}``, ``{b}``  the operands (tensors, or numbers combined with them) in the order of the record
``{T}``           the value type: ``f32`` for ``float16``, too; ``T``'s functions end in it: ``exp_{T}({a})``
``{U}``           the unsigned integer of the value type's size
``{L}``           the integer type that the value type is promoted to: ``i32``, ``u32``, ``i64`` or ``u64``
``{R}``           the type of the parts of a complex value type
``{W}``, ``{P}``  the names of the value type and of that of its parts in capitals: ``SQRT_F32``, ``C64``
``{value}``       a plain parameter of the record that is a number (``float``, ``Number``), as a value
================  =====================================================================================

Plain parameters of type ``str``, ``bool`` or ``int``, and None instead of a number, select an expression. The entry is
then a function, which returns the expression. Its parameters have the names of those it needs::

    "gelu": {"float": lambda approximate: TANH if approximate == "tanh" else ERF}
    "logit": {"float": lambda eps: PLAIN if eps is None else LIMITED}  # where LIMITED says {eps}

Such a parameter is a constant of the kernel, which is compiled again for every value.

``RARE(condition) ? costly : usual`` keeps what rare values need out of the loops over other ones, see
:mod:`candelabra_clike.templates.elementwise.loops`. The condition contains no brackets.

An expression refuses a value by ``REFUSE(condition, REASON)``, followed by a comma: ``(REFUSE({b} == 0,
DIVISION_BY_ZERO), {a} / {b})``. :mod:`candelabra_clike.refusals` defines the reasons and their errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype

from candelabra_clike.types import CTYPES

Expression = str | Callable[..., str]
Entry = Mapping[str, Expression]


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


def fill_types(expression: str, d: dtype) -> str:
    """Fill the types into an expression."""
    value = CTYPES[d].value
    long = value[0] + str(max(32, int(value[1:])))
    words = {"{L}": long, "{T}": value, "{U}": "u" + value[1:], "{W}": value.upper(), "{R}": CTYPES[d.to_real()].value}
    words["{P}"] = words["{R}"].upper()
    for word, meaning in words.items():
        expression = expression.replace(word, meaning)
    return expression


EXPRESSIONS: dict[str, Entry] = _merge_entries()
CONTRACTED = _contracted_operators()
"""The operators of modules with ``CONTRACTED = True``: polynomials, in which ``a * b + c`` may be fused."""
