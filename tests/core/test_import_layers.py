"""Imports of the core follow its layers; those inside functions that tie modules together are counted and listed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "core" / "src" / "candelabra"
TIED = 5
"""The modules that import each other, directly or through others, if imports inside functions count. The number may
only fall: lower it when a change unties modules."""


class Imports(NamedTuple):
    """The modules of the core that a module imports at the top, and inside functions."""

    top: set[str]
    late: set[str]


@cache
def modules() -> dict[str, ast.Module]:
    """Return the modules of the core by path below ``candelabra``, without what is generated."""
    files = [path for path in CORE.rglob("*.py") if path.parent.name != "_index"]
    return {path.relative_to(CORE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in files}


@cache
def module_at(name: str) -> str | None:
    """Return the path of a module by its dotted name, or None for other names."""
    package, _, rest = name.partition(".")
    stem = rest.replace(".", "/")
    paths = (f"{stem}.py", f"{stem}/__init__.py") if rest else ("__init__.py",)
    return next((path for path in paths if package == "candelabra" and path in modules()), None)


def targets(node: ast.AST) -> Iterator[str]:
    """Yield the modules of the core that an import statement names. A name of the package itself is none."""
    if isinstance(node, ast.Import):
        found = [module_at(alias.name) for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module:
        home = module_at(node.module) if node.module != "candelabra" else None
        found = [module_at(f"{node.module}.{alias.name}") or home for alias in node.names]
    else:
        found = []
    yield from filter(None, found)


def collect(node: ast.AST, late: bool, into: Imports) -> None:
    """Add the imports below a node, without those for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for statement in child.orelse:
                collect(ast.Module([statement], []), late, into)
        elif isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            (into.late if late else into.top).update(targets(child))
            collect(child, late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef), into)


@cache
def imports() -> dict[str, Imports]:
    """Return the imports of each module. One that is also at the top is not late."""
    found = {}
    for path, tree in modules().items():
        each = Imports(set(), set())
        collect(tree, False, each)
        found[path] = Imports(each.top - {path}, each.late - each.top - {path})
    return found


def tied(edges: dict[str, set[str]]) -> list[set[str]]:
    """Return the sets of modules that reach each other, the largest first."""

    def reached(start: str) -> set[str]:
        found, waiting = set[str](), [start]
        while waiting:
            for module in edges[waiting.pop()] - found:
                found.add(module)
                waiting.append(module)
        return found

    reach = {module: reached(module) for module in edges}
    groups = {
        frozenset(other for other in reach[module] if module in reach[other])
        for module in edges
        if module in reach[module]
    }
    return sorted(map(set, groups), key=len, reverse=True)


def rows_of_tour() -> list[tuple[list[str], list[str]]]:
    """Return the modules of each row of the tour's table, and what they import late."""
    page = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
    section = page.partition("## Imports inside functions")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    return [(re.findall("`(.+?)`", row[1]), re.findall("`(.+?)`", row[2])) for row in rows]


def covers(written: str, module: str) -> bool:
    """Return whether a word of the table means a module: its path, or the folder that contains it."""
    return module == written or (written.endswith("/") and module.startswith(written))


def test_imports_at_the_top_form_no_cycle() -> None:
    """So every module can be imported first."""
    assert tied({module: each.top for module, each in imports().items()}) == []


def test_no_more_modules_are_tied_by_imports_inside_functions() -> None:
    """An import inside a function from a lower to a higher layer ties all modules in between."""
    largest = tied({module: each.top | each.late for module, each in imports().items()})[0]
    assert len(largest) <= TIED, f"{len(largest)} modules import each other, {TIED} did: {sorted(largest)}"
    assert len(largest) == TIED, f"{len(largest)} modules import each other, {TIED} did: lower TIED"


def test_the_tour_lists_the_imports_inside_functions() -> None:
    """Each is late on purpose, and the tour says why. Operators use each other; the tour has a sentence on them."""
    rows = rows_of_tour()
    missing = [
        f"{module} -> {target}"
        for module, each in imports().items()
        for target in each.late
        if not module.startswith("_operators/")
        if not any(
            any(covers(word, module) for word in left) and any(covers(word, target) for word in right)
            for left, right in rows
        )
    ]
    assert sorted(missing) == []
