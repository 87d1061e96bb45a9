"""Find tests whose random numbers depend on what ran before them: ``python tools/generators.py`` (in ``make lint``).

A generator that is created at the import of a module is shared by its tests, so the numbers of one test depend on the
tests that ran before in the same process. The fixture ``rng`` gives each test a generator of its own. The functions of
NumPy's and Python's global generators have the same problem.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "tests"
MAKERS = frozenset({"default_rng", "Generator", "Random", "RandomState", "SystemRandom"})
"""The functions and classes that create a generator."""
GLOBAL = frozenset({"random", "np.random", "numpy.random"})
"""Modules whose functions draw from a generator of the process. Their classes are in ``MAKERS`` or make none."""


def at_import(node: ast.AST) -> Iterator[ast.Call]:
    """Return the calls that run when a module is imported: all except those in the bodies of functions and lambdas."""
    if isinstance(node, ast.Call):
        yield node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        parts: list[ast.AST] = [*node.decorator_list, node.args]
    elif isinstance(node, ast.Lambda):
        parts = [node.args]
    else:
        parts = list(ast.iter_child_nodes(node))
    for part in parts:
        yield from at_import(part)


def faults(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, error) for each generator that outlives a test."""
    tree = ast.parse(source)
    for call in at_import(tree):
        name = ast.unparse(call.func)
        if name.rpartition(".")[2] in MAKERS:
            yield call.lineno, f"{name}() is called at import: use the fixture rng, or make the generator in the test"
    imported = {
        alias.asname or alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        module, function = ast.unparse(node.func.value), node.func.attr
        known = module in GLOBAL and module.partition(".")[0] in imported
        if known and function[0].islower() and function not in MAKERS:
            yield node.lineno, f"{module}.{function}() draws from a generator of the process: use the fixture rng"


def main() -> int:
    """Return 1 if a test module has a fault."""
    found = [
        f"{path.relative_to(FOLDER.parent)}:{line}: {text}"
        for path in sorted(FOLDER.rglob("*.py"))
        for line, text in faults(path.read_text())
    ]
    print("\n".join(found) or "no generator outlives a test")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
