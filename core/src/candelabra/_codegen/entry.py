"""What users call: functions, methods and data-model operators, generated from the schema.

An entry binds arguments (CPython does that in C), makes dims canonical, ORs the tensors' keys with the thread's mode
bits, if any thread has one, and calls what the table holds. No ``*args`` on this path.
"""

from __future__ import annotations

from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any
from candelabra._codegen import arguments
from candelabra._codegen.source import build
from candelabra._keys import SCALAR_BITS, SCALAR_FIRST, active, state
from candelabra._records.schema import (
    DEVICE,
    DIM,
    DIMS,
    DTYPE,
    INDEX,
    INDICES,
    LIST,
    MASK,
    OPERAND,
    OPTIONAL,
    REQUIRED,
    SHAPE,
    TENSOR,
    Parameter,
)
from candelabra.dtypes import DTYPE_MASK, bool_, int64

if TYPE_CHECKING:
    from candelabra._records.record import Operator

KEY_MASK = ~DTYPE_MASK
ALIASES = {"dim": "axis", "keepdim": "keepdims"}
"""NumPy's names, accepted by keyword wherever PyTorch's are."""


def compile_entry(operator: Operator[..., Any], kind: str) -> Callable[..., Any]:
    """Compile one form: ``"function"``, ``"inplace"``, or one for Python's operators: ``"binary"`` (``__add__``),
    ``"reflected"`` (``__radd__``), ``"assigned"`` (``__iadd__``), which return NotImplemented for strangers."""
    from candelabra._tensor import Tensor

    schema = operator.schema
    inplace = kind in ("inplace", "assigned")
    infix = kind in ("binary", "reflected", "assigned")
    parameters = list(schema.parameters)
    scope: dict[str, Any] = {
        "table": operator.inplace_table if inplace else operator.table, "state": state, "active": active,
        "Tensor": Tensor, "SCALAR_BITS": SCALAR_BITS, "SCALAR_FIRST": SCALAR_FIRST, "op": operator,
        "KEY_MASK": KEY_MASK, **{name: getattr(arguments, name) for name in arguments.__all__},
    }  # fmt: skip
    body: list[str] = []
    signature: list[str] = []
    starred = False
    for p in parameters:
        if p.keyword_only and not starred:
            signature.append("*")
            starred = True
        if p.default is REQUIRED:
            signature.append(p.name)
        else:
            scope[f"default_{p.name}"] = p.default
            signature.append(f"{p.name}=default_{p.name}")
    names = [p.name for p in parameters]
    if infix:
        names = names[:2]
        parameters = parameters[:2]
        signature = names[::-1] if kind == "reflected" else names
    extra: list[str] = []
    if operator.out and not inplace and not infix:
        extra.append("out=None")
        passed = [n if not p.keyword_only else f"{n}={n}" for n, p in zip(names, parameters, strict=True)]
        body += ["if out is not None:", f"    return write_out(op, out, {', '.join(passed)})"]
    for name, alias in ALIASES.items():
        if not infix and name in names and alias not in names:
            extra.append(f"{alias}=None")
            body += [f"if {alias} is not None: {name} = {alias}"]
    if extra:
        signature += ([] if starred else ["*"]) + extra
    itself = {"reflected": names[-1]}.get(kind, names[0]) if infix else None
    body += key_lines(parameters, operator, infix, itself)
    body += canonical_lines(parameters)
    body.append(f"return table[key]({', '.join(names)})")
    title = operator.name + ("_" if inplace else "")
    function = build(title, ", ".join(signature), body, scope, title)
    function.__doc__ = operator.doc if not inplace else f"In-place form of :func:`candelabra.{operator.name}`."
    function.__qualname__ = title
    function.__module__ = "candelabra"
    return function


def key_lines(
    parameters: list[Parameter], operator: Operator[..., Any], infix: bool = False, itself: str | None = None
) -> list[str]:
    """The lines that compute ``key``; misuse ends in an error that names operator and argument.

    ``itself`` is the ``self`` of Python's operators: a tensor for sure.
    """
    terms: list[str] = []
    lines: list[str] = []
    first_operand = next((p.name for p in parameters if p.kind == OPERAND), None)
    late: list[str] = []
    for p in parameters:
        n = p.name
        if p.kind == TENSOR or n == itself:
            terms.append(f"{n}._keys")
        elif p.kind == OPERAND:
            mark = " | SCALAR_FIRST" if n == first_operand else ""
            lines += [
                f"_t = type({n})",
                f"if _t is Tensor: _k_{n} = {n}._keys",
                "else:",
                f"    _k_{n} = SCALAR_BITS.get(_t)",
                f"    if _k_{n} is None: {n}, _k_{n} = as_operand(op, {n!r}, {n}, {bool(mark)})",
            ]
            if mark:
                lines.append(f"    else: _k_{n} |= SCALAR_FIRST")
            if infix:
                lines[-1 - bool(mark)] = lines[-1 - bool(mark)].replace("as_operand(", "maybe_operand(")
                lines.append(f"    if _k_{n} is None: return NotImplemented")
            terms.append(f"_k_{n}")
        elif p.kind == OPTIONAL:
            late += [f"if {n} is not None: key |= {n}._keys"]
        elif p.kind == LIST:
            lines += [f"{n} = as_tensors(op, {n!r}, {n})"]
            late += [f"for _t in {n}: key |= _t._keys"]
        elif p.kind in (INDEX, MASK):
            bit = (int64 if p.kind == INDEX else bool_).bit
            lines += [f"if type({n}) is not Tensor or not {n}._keys & {bit}: {n} = as_{p.kind}(op, {n!r}, {n})"]
            terms.append(f"{n}._keys & KEY_MASK")
        elif p.kind == INDICES:
            lines += [f"{n} = as_indices(op, {n!r}, {n})"]
            late += [f"for _t in {n}:", "    if _t is not None: key |= _t._keys & KEY_MASK"]
        elif p.kind == DEVICE and p.name == "device":
            late += ["device = as_device(device)", "key |= device.bit"]
    tensors = [p.name for p in parameters if p.kind in (TENSOR, OPTIONAL)]
    mode = ["if active: key |= state.bits"] if terms else []
    lookup = [f"key = {' | '.join(terms) or 'state.bits'}", *mode, *late]
    if tensors:
        rest = ", ".join(f"{n}={n}" for n in tensors)
        lookup = [
            "try:",
            *("    " + line for line in lookup),
            "except AttributeError:",
            "    return NotImplemented" if infix else f"    raise not_tensors(op, {rest}) from None",
        ]
    return lines + lookup


def canonical_lines(parameters: list[Parameter]) -> list[str]:
    """The lines that make dims, shapes, dtypes and the like canonical."""
    lines = []
    first = next((p.name for p in parameters if p.kind in (TENSOR, OPERAND, LIST)), "None")
    source = f"{first}[0]" if any(p.kind == LIST and p.name == first for p in parameters) else first
    if any(p.kind == DIM for p in parameters):
        lines.append(f"_rank = len({source}._payload.shape)" if source != "None" else "_rank = 0")
    for p in parameters:
        n = p.name
        if p.kind == DIM:
            # Canonical already, nearly always: two comparisons instead of two calls.
            absent = f"{n} is not None and " if "None" in p.annotation else ""
            lines.append(f"if {absent}(type({n}) is not int or not 0 <= {n} < _rank): {n} = as_dim({n}, {source})")
        elif p.kind == DIMS:
            lines.append(f"if {n} is not None: {n} = as_dims({n}, {source})")
        elif p.kind == SHAPE:
            lines.append(f"{n} = as_shape({n})")
        elif p.kind == DTYPE:
            lines.append(f"if {n} is not None: {n} = as_dtype({n})")
    return lines
