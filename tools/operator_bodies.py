"""Check from the syntax trees how operators create tensors, and that they read no values (part of ``make lint``).

An operator's body and derivative may run below a transform, on tensors that hold other tensors, or without data. So
they create tensors like an operand (``new_full(x, …)``, ``x.new_zeros(…)``), never by ``device=x.device``, which names
the real device and loses the level; and they do not read values (``.item()``, ``.tolist()``) unless the record says
``data_dependent=True``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("core/src/candelabra/_operators", "nn/src/candelabra/nn/_operators", "nn/src/candelabra/nn/_functional")
READS = ("item", "tolist")
CREATORS = ("new_",)
"""Operators that create tensors like an operand may use its device."""


def findings(source: str, path: str) -> Iterator[str]:
    """Yield ``path:line: error`` for each error in one module."""
    tree = ast.parse(source, path)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith(CREATORS):
            yield from named_devices(node, path)
        if isinstance(node, ast.FunctionDef) and is_body(node):
            yield from reads(node, path)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("vjp", "scattered")
        ):
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                yield from reads(argument, path)


def named_devices(function: ast.FunctionDef, path: str) -> Iterator[str]:
    """Return calls with ``device=x.device`` or ``device=x._instance`` in a function, without those in nested
    functions.
    """
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            value = keyword.value
            if keyword.arg == "device" and of_an_operand(value):
                yield (
                    f"{path}:{node.lineno}: device={ast.unparse(value)} names the real device: create like the "
                    "operand, by new_full, new_arange or a method new_*"
                )


def of_an_operand(value: ast.expr) -> bool:
    """Return whether an expression is the device of a variable: ``input.device``, not ``self.device`` or
    ``as_device(d)``.
    """
    return (
        isinstance(value, ast.Attribute)
        and value.attr in ("device", "_instance")
        and isinstance(value.value, ast.Name)
        and value.value.id != "self"
    )


def is_body(function: ast.FunctionDef) -> bool:
    """Return whether a function is the body of an operator that must not read values."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "operator":
            return not any(k.arg == "data_dependent" for k in decorator.keywords)
    return False


def reads(node: ast.AST, path: str) -> Iterator[str]:
    """Return calls that read values."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in READS:
            yield (
                f"{path}:{inner.lineno}: .{inner.func.attr}() reads values: move it to check=, or say "
                "data_dependent=True"
            )


def main() -> int:
    """Print every finding. Return 1 if there is one."""
    found = [
        finding
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        for finding in findings(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
    ]
    for finding in dict.fromkeys(found):
        print(finding)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
