"""Entries: the functions, methods and data-model operators that users call, generated from the schema.

An entry binds arguments (CPython does that in C), converts dims to their canonical form, ORs the tensors' keys with the
thread's mode bits, if any thread has one, and calls the function in the dispatch table. It avoids ``*args``, except for
variadic parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen import arguments
from candelabra._codegen.parameters import (
    canonical_lines,
    flattened,
    key_lines,
    keyword_lines,
    passed_by_name,
    plain_lines,
    signature_of,
)
from candelabra._codegen.source import build, indent
from candelabra._dispatch.refusing import passed_sizes, refuse
from candelabra._keys import SCALAR_BITS, SCALAR_FIRST, active, state
from candelabra._records.schema import (
    OPERAND,
    REQUIRED,
    TENSOR,
    Parameter,
)  # fmt: skip
from candelabra._size import Size
from candelabra._tensor import Tensor
from candelabra.dtypes import DTYPE_MASK

if TYPE_CHECKING:
    from candelabra._records.overloads import OverloadSet
    from candelabra._records.record import Operator


KEY_MASK = ~DTYPE_MASK


def compile_entry(
    operator: Operator[..., Any], kind: str, choosing: tuple[OverloadSet, Callable[..., Any]] | None = None
) -> Callable[..., Any]:
    """Compile one form of an operator.

    The forms are ``"function"``, ``"inplace"``, ``"canonical"`` (all arguments by position and in canonical form), and
    those of Python's operators: ``"binary"`` (``__add__``), ``"reflected"`` (``__radd__``) and ``"assigned"``
    (``__iadd__``), which return NotImplemented for unknown types.

    ``choosing``: the overload set whose first member the operator is, and the entry that chooses among all members.
    """
    inplace = kind in ("inplace", "assigned")
    infix = kind in ("binary", "reflected", "assigned")
    canonical = kind == "canonical"
    parameters = list(operator.schema.parameters[:2] if infix else operator.schema.parameters)
    scope: dict[str, Any] = {
        "table": operator.inplace_table if inplace else operator.table, "state": state, "active": active,
        "Tensor": Tensor, "SCALAR_BITS": SCALAR_BITS, "SCALAR_FIRST": SCALAR_FIRST, "_op": operator,
        "KEY_MASK": KEY_MASK, **{name: getattr(arguments, name) for name in arguments.__all__},
    }  # fmt: skip
    names = [p.name for p in parameters]
    body: list[str] = []
    if infix or canonical:
        signature = names[::-1] if kind == "reflected" else names
    else:
        signature, body = head_lines(operator, parameters, kind, choosing, scope)
    itself = {"reflected": names[-1]}.get(kind, names[0]) if infix else None
    body += key_lines(parameters, operator, infix, itself, canonical, inplace)
    body += [] if canonical else plain_lines(parameters, scope) + canonical_lines(parameters)
    body.append(f"return table[key]({', '.join(names)})")
    entry = operator if choosing is None else choosing[0]
    title = entry.name + ("_" if inplace else "")
    if not canonical:
        body = guarded_lines(body, entry, "_" if inplace else "", parameters, scope, choosing is not None)
    function = build(title, ", ".join(signature), body, scope, title)
    doc = entry.doc if not inplace else f"In-place form of :func:`candelabra.{entry.name}`."
    return named(function, title, doc, entry.namespace)


def guarded_lines(
    body: list[str],
    entry: Any,
    suffix: str,
    parameters: Sequence[Parameter],
    scope: dict[str, Any],
    choosing: bool = False,
) -> list[str]:
    """Return the lines of an entry with a handler that describes errors by the arguments; see ``refuse``.

    ``choosing``: the entry chooses among overloads; a variadic parameter has its own name there (``sizes_lines``).
    """
    scope |= {"refuse": refuse, "passed_sizes": passed_sizes, "PARAMETERS": tuple(parameters), "guarded": entry}
    values = [
        p.name if not flattened(p) else f"passed_sizes({p.name}, {'None' if choosing else '_' + p.name})"
        for p in parameters
    ]
    title = f"guarded.title + {suffix!r}" if suffix else "guarded.title"
    given = "".join(f"{value}, " for value in values)
    return [
        "try:", *indent(body), "except Exception as _error:",
        f"    refuse({title}, PARAMETERS, _error, ({given}){', chosen=True' if choosing else ''})", "    raise",
    ]  # fmt: skip


def head_lines(
    operator: Operator[..., Any],
    parameters: Sequence[Parameter],
    kind: str,
    choosing: tuple[OverloadSet, Callable[..., Any]] | None,
    scope: dict[str, Any],
) -> tuple[list[str], list[str]]:
    """Return the parameter list of a function or in-place form, and the lines for arguments outside the schema."""
    names = [p.name for p in parameters]
    added: list[Parameter] = []
    optional: set[str] = set()
    if choosing is not None:
        scope["choosing"] = choosing[1]
        if flattened(parameters[-1]):
            return sizes_lines(names, scope)
    out = bool(operator.out and kind != "inplace")
    extra, lines = keyword_lines(parameters, scope, out, operator.name)
    if choosing is not None:
        added, others, optional = other_lines(choosing[0], parameters, kind, out, scope)
        lines += others
    if out:
        lines.append(f"if out is not None: return write_out(_op, out, ({', '.join(names)},))")
    shown = sorted([*parameters, *added], key=lambda p: p.keyword_only)
    signature = signature_of(shown, scope, extra, optional)
    factors = factors_of(shown)
    if factors:
        # PyTorch's arguments of before 1.5, `add_(2, x)`: the factors of a sum come before the tensors.
        scope |= {"number_first": arguments.number_first, "entry": operator if choosing is None else choosing[0]}
        signature[signature.index("*")] = "*_more"
        passed = [p.name for p in shown if not p.keyword_only]
        values = f"({', '.join(passed)}, *_more)"
        lines.insert(0, f"if _more: return number_first(entry, {kind!r}, {factors!r}, {len(passed)}, {values})")
    if operator.inplace_argument and kind == "function":
        scope["form"] = operator.form
        signature.insert(signature.index("*") if "*" in signature else len(signature), "inplace=False")
        lines.insert(0, f"if inplace: return form('inplace')({', '.join(passed_by_name(p) for p in parameters)})")
    return signature, lines


def factors_of(parameters: Sequence[Parameter]) -> tuple[str, ...]:
    """Return the names of the factors of a sum, ``alpha``, ``beta`` or ``value``, if all else is tensors."""
    factors = tuple([p.name for p in parameters if p.keyword_only])
    tensors = all(p.kind in (TENSOR, OPERAND) for p in parameters if not p.keyword_only)
    return factors if tensors and factors and set(factors) <= {"alpha", "beta", "value"} else ()


def sizes_lines(names: list[str], scope: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the same as :func:`head_lines` for a first member whose last parameter is a variadic size.

    The set's own entry serves calls with keywords and with other values than sizes (``x.view(dtype)``).
    """
    *first, last = names
    scope["SIZES"] = (int, tuple, list, Size)
    other = f"_named or ({last} and type({last}[0]) not in SIZES)"
    lines = [f"if {other}: return choosing({', '.join(first)}, *{last}, **_named)"]
    return [*first, f"*{last}", "**_named"], lines


def other_lines(
    overload_set: OverloadSet, parameters: Sequence[Parameter], kind: str, out: bool, scope: dict[str, Any]
) -> tuple[list[Parameter], list[str], set[str]]:
    """Return what the other overloads add to an entry: parameters, lines at its head, and optional parameters.

    None for a parameter that only one overload has means that it is omitted.
    """
    shared = [p.name for p in parameters if not p.keyword_only]
    added: dict[str, Parameter] = {}
    lines: list[str] = []
    shortest = len(shared)
    for number, (member, accepted) in enumerate(overload_set.members[1:]):
        own = accepted[len(shared) :]
        if own:
            scope[f"other_{number}"] = member.form(kind)
            added |= {p.name: p._replace(default=None) for p in own}
            passed = [*shared, *(f"{p.name}={p.name}" for p in own), *(["out=out"] if out else [])]
            present = " or ".join(f"{p.name} is not None" for p in own)
            lines.append(f"if {present}: return other_{number}({', '.join(passed)})")
        else:
            shortest = min(shortest, len(accepted))
    optional = shared[shortest:]
    if optional:
        scope |= {"present_arguments": arguments.present_arguments, "REQUIRED": REQUIRED}
        absent = " or ".join(f"{name} is REQUIRED" for name in optional)
        passed = [f"{name}={name}" for name in [*shared, *(["out"] if out else [])]]
        lines.append(f"if {absent}: return choosing(**present_arguments({', '.join(passed)}))")
    return list(added.values()), lines, set(optional)


def named(function: Callable[..., Any], title: str, doc: str, namespace: str = "") -> Callable[..., Any]:
    """Set the name, documentation and public module of a generated function, by which pickle finds it; return it."""
    function.__doc__ = doc
    function.__name__ = function.__qualname__ = title
    function.__module__ = f"candelabra.{namespace}" if namespace else "candelabra"
    return function
