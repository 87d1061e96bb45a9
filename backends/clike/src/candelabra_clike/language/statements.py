"""Several expressions as statements: what they have in common is computed once."""

from __future__ import annotations

from collections.abc import Sequence

from candelabra_clike.language.printing import text, type_name
from candelabra_clike.language.values import Constant, Number, Select, Value, Variable, replaced


def assignments(targets: Sequence[str], values: Sequence[Value]) -> str:
    """Return statements that assign values to variables, as if at the same time: a value that reads one of the
    variables reads what it was before.

    A node that several nodes use is computed once, in a constant. If all values are
    :func:`~candelabra_clike.language.rare` choices by one condition, and usually the variables as they are, there is a
    branch.
    """
    pairs = [(t, v) for t, v in zip(targets, values, strict=True) if not _is_variable(v, t)]
    condition = _shared_rare_condition(pairs)
    if condition is not None:
        chosen = [v.chosen for _, v in pairs if isinstance(v, Select)]
        return f"if (UNLIKELY({text(condition)})) {{\n{assignments([t for t, _ in pairs], chosen)}}}\n"
    constants, printed = with_constants([v for _, v in pairs])
    assigned = [t for t, _ in pairs]
    lines = constants
    if any(_reads(v, assigned[:k]) for k, v in enumerate(printed)):
        lines += [f"const {_variable_type(v)} new{k} = {text(v)};" for k, v in enumerate(printed)]
        lines += [f"{t} = new{k};" for k, t in enumerate(assigned)]
    else:
        lines += [f"{t} = {text(v)};" for t, v in zip(assigned, printed)]
    joined = "".join(f"{line}\n" for line in lines)
    return joined if len(lines) == len(assigned) else f"{{\n{joined}}}\n"


def with_constants(values: Sequence[Value]) -> tuple[list[str], list[Value]]:
    """Return declarations of constants ``c0`` … for the nodes that several nodes use, and the values that refer to
    them.
    """
    constants: dict[Value, Value] = {}
    lines: list[str] = []
    for node in shared_nodes(values):
        name = f"c{len(constants)}"
        lines.append(f"const {_variable_type(node)} {name} = {text(replaced(node, constants))};")
        constants[node] = Variable(node.type, name)
    return lines, [replaced(value, constants) for value in values]


def shared_nodes(values: Sequence[Value]) -> list[Value]:
    """Return the nodes that several nodes use, other than variables and numbers. Each comes after its operands."""
    uses: dict[Value, int] = {}
    found: list[Value] = []

    def visit(node: Value) -> None:
        uses[node] = uses.get(node, 0) + 1
        if uses[node] == 1:
            for operand in node.operands:
                visit(operand)
            found.append(node)

    for value in values:
        visit(value)
    return [node for node in found if uses[node] > 1 and not isinstance(node, Variable | Constant | Number)]


def _is_variable(value: Value, name: str) -> bool:
    return isinstance(value, Variable) and value.name == name


def _reads(value: Value, names: Sequence[str]) -> bool:
    return any(isinstance(node, Variable) and node.name in names for node in value.walk())


def _shared_rare_condition(pairs: Sequence[tuple[str, Value]]) -> Value | None:
    """Return the condition by which all variables seldom change, if it is one."""
    first = pairs[0][1] if pairs else None
    if not isinstance(first, Select):
        return None
    for target, value in pairs:
        if not isinstance(value, Select) or not value.rare or value.condition is not first.condition:
            return None
        if not _is_variable(value.other, target):
            return None
    return first.condition


def _variable_type(value: Value) -> str:
    """Return the type of a variable in a register: comparisons are integers of 32 bits in C."""
    return "u32" if value.type == "bool" else type_name(value.type)
