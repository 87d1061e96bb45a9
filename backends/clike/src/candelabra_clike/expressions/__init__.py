"""What every element becomes, as C: one table of expressions for all dialects, a module a family.

An entry is ``operator: {kind: expression}``. The kind is a dtype's name (``float16``), a value type (``f32``), a group
of them (``float``, ``signed``, ``unsigned``, ``integer``, ``complex``), ``bool``, ``number`` (neither complex nor
bool) or ``any``; the most special one that is there serves. Words in braces are filled in:

================  =====================================================================================
``{a}``, ``{b}``  the operands (tensors, or numbers beside them) in the order of the record
``{T}``           the value type: ``f32`` for ``float16``, too; ``T``'s functions end in it: ``exp_{T}({a})``
``{U}``           the unsigned integer of the value type's size
``{L}``           the integer type that the value type is promoted to: ``i32``, ``u32``, ``i64`` or ``u64``
``{R}``           the type of the parts of a complex value type
``{W}``, ``{P}``  the names of the value type and of that of its parts in capitals: ``SQRT_F32``, ``C64``
``{value}``       a plain parameter of the record that is a number (``float``, ``Number``), as a value
================  =====================================================================================

Plain parameters that choose (of type ``str``, ``bool``, ``int``, or None instead of a number) are for entries that are
a function instead of a text. It has parameters of the same names, as many of them as it likes, and returns the text::

    "gelu": {"float": lambda approximate: TANH if approximate == "tanh" else ERF}
    "logit": {"float": lambda eps: PLAIN if eps is None else LIMITED}  # where LIMITED says {eps}

An ``int`` parameter (``decimals``) is such a constant too: the kernel is compiled anew for each value of it.

An expression may say ``BAD(condition)``, followed by a comma, where values have to be refused: ``(BAD({b} == 0), {a} /
{b})``. What is raised then stands in :mod:`candelabra_clike.kernels.refusals`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules

from candelabra.dtypes import BOOL, COMPLEX, FLOATING, dtype

from candelabra_clike.types import CTYPES

Expression = str | Callable[..., str]
Entry = Mapping[str, Expression]


def _joined() -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for info in iter_modules(__path__, __name__ + "."):
        for name, entry in import_module(info.name).EXPRESSIONS.items():
            if name in found:
                raise TypeError(f"expressions: {name!r} is there twice, the second time in {info.name}")
            found[name] = entry
    return found


def _contracted() -> frozenset[str]:
    modules = [import_module(info.name) for info in iter_modules(__path__, __name__ + ".")]
    return frozenset(name for m in modules if getattr(m, "CONTRACTED", False) for name in m.EXPRESSIONS)


def kinds(d: dtype) -> tuple[str, ...]:
    """The kinds under which an expression for a dtype may stand, the most special first."""
    value = CTYPES[d].value
    if d.category == BOOL:
        return ("bool", "any")
    if d.category == COMPLEX:
        return (d.name, value, "complex", "any")
    if d.category == FLOATING:
        return (d.name, value, "float", "number", "any")
    return (d.name, value, "signed" if d.is_signed else "unsigned", "integer", "number", "any")


def expression_for(entry: Entry, d: dtype) -> Expression | None:
    """The expression of an entry for a dtype; None where there is none."""
    return next((entry[kind] for kind in kinds(d) if kind in entry), None)


def typed(expression: str, d: dtype) -> str:
    """An expression with its types filled in."""
    value = CTYPES[d].value
    long = value[0] + str(max(32, int(value[1:])))
    words = {"{L}": long, "{T}": value, "{U}": "u" + value[1:], "{W}": value.upper(), "{R}": CTYPES[d.to_real()].value}
    words["{P}"] = words["{R}"].upper()
    for word, meaning in words.items():
        expression = expression.replace(word, meaning)
    return expression


EXPRESSIONS: dict[str, Entry] = _joined()
CONTRACTED = _contracted()
"""The operators of modules that say ``CONTRACTED = True``: polynomials, where ``a * b + c`` may be rounded once."""
