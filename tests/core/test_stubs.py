"""Editors see every function and method: the generated stubs name them all, and the package shows them."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import candelabra as cd
import pytest
from candelabra._namespace import index
from candelabra._namespace.publishing import data_model
from candelabra.library import METHODS, Operator, PublicCallable, entries, entry_named, public_names

ROOTS = [Path(path) for path in cd.__path__]
NAMESPACES = sorted({name.rpartition(".")[0] for name in index.FUNCTIONS_IN})
Functions = dict[str, list[ast.FunctionDef]]


def functions(nodes: list[ast.stmt]) -> Functions:
    """The functions that a list of statements defines, with their overloads."""
    found: Functions = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


def stubs(pattern: str) -> list[ast.Module]:
    """Every stub of that name, in whichever distribution."""
    return [ast.parse(path.read_text()) for root in ROOTS for path in sorted(root.glob(pattern))]


def stub_of(namespace: str) -> Functions:
    """The functions in the stub of a namespace; the top one has a stub in each distribution."""
    pattern = f"{namespace.replace('.', '/')}.pyi" if namespace else "_functions*.pyi"
    return {name: nodes for module in stubs(pattern) for name, nodes in functions(module.body).items()}


def methods() -> Functions:
    """The methods in the stubs of the classes that Tensor inherits from."""
    classes = [n for module in stubs("_methods*.pyi") for n in module.body if isinstance(n, ast.ClassDef)]
    return {name: nodes for each in classes for name, nodes in functions(each.body).items()}


def parameters(node: ast.FunctionDef) -> list[str]:
    """The names of a stub's parameters: positional ones in order, then the others."""
    a = node.args
    positional = [arg.arg for arg in (*a.posonlyargs, *a.args)]
    return [*positional, *sorted(arg.arg for arg in (*a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))))]


def at_run_time(function: object) -> list[str]:
    """The same of a function."""
    found = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    ordered = [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [*ordered, *sorted({p.name for p in found} - set(ordered))]


@pytest.mark.parametrize("namespace", NAMESPACES, ids=[name or "top" for name in NAMESPACES])
def test_every_function_is_in_the_stub_with_documentation_and_signature(namespace: str) -> None:
    """A public function stands in the stub of its namespace, and nothing else does; an overload set has several."""
    stub = stub_of(namespace)
    wanted = {name.rpartition(".")[2]: name for name in public_names() if name.rpartition(".")[0] == namespace}
    assert set(wanted) == set(stub)
    for short, name in wanted.items():
        entry = entry_named(name)
        assert entry is not None
        assert len(stub[short]) == len(entry.signatures()), name
        assert all(ast.get_docstring(node) and node.returns for node in stub[short]), name
        if isinstance(entry, (Operator, PublicCallable)):
            assert parameters(stub[short][0]) == at_run_time(entry.form("function")), name


def test_every_method_is_in_the_stub_with_documentation_and_signature() -> None:
    """Those of operators, overload sets and callables, and Python's own operators; properties are properties."""
    stub = methods()
    assert entries()
    assert set(stub) == set(METHODS) | set(data_model())
    for name, (entry, form) in METHODS.items():
        nodes = stub[name]
        assert all(ast.get_docstring(node) and node.returns for node in nodes), name
        decorated = any(isinstance(d, ast.Name) and d.id == "property" for node in nodes for d in node.decorator_list)
        assert decorated is entry.is_property, name
        if isinstance(entry, (Operator, PublicCallable)):
            first, *rest = at_run_time(entry.form(form))
            assert parameters(nodes[0]) == ["self", *rest], (name, first)


def test_overloads_are_marked_as_such() -> None:
    """Type checkers refuse several definitions of one name that are not."""
    for nodes in [*(n for space in NAMESPACES for n in stub_of(space).values()), *methods().values()]:
        marks = [any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list) for node in nodes]
        assert marks == [len(nodes) > 1] * len(nodes), nodes[0].name


def test_the_package_shows_type_checkers_the_stub() -> None:
    """What ``__getattr__`` finds at run time is what the stub says, for those who only read."""
    source = Path(cd.__file__).read_text()
    assert "from candelabra._functions import *" in source
