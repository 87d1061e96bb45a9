"""The generated stubs list every function and method, and editors find the stubs."""

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
    """Return the functions that a list of statements defines, with their overloads."""
    found: Functions = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


def stubs(pattern: str) -> list[ast.Module]:
    """Return every stub with that name, in all distributions."""
    return [ast.parse(path.read_text()) for root in ROOTS for path in sorted(root.glob(pattern))]


def stub_of(namespace: str) -> Functions:
    """Return the functions in the stubs of a namespace; the top-level one has a stub in each distribution."""
    pattern = f"{namespace.replace('.', '/')}.pyi" if namespace else "_functions*.pyi"
    return {name: nodes for module in stubs(pattern) for name, nodes in functions(module.body).items()}


def methods() -> Functions:
    """Return the methods in the stubs of the classes that Tensor inherits from."""
    classes = [n for module in stubs("_methods*.pyi") for n in module.body if isinstance(n, ast.ClassDef)]
    return {name: nodes for each in classes for name, nodes in functions(each.body).items()}


def parameters(node: ast.FunctionDef) -> list[str]:
    """Return the names of a stub's parameters: positional ones in order, then the others."""
    a = node.args
    positional = [arg.arg for arg in (*a.posonlyargs, *a.args)]
    return [*positional, *sorted(arg.arg for arg in (*a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))))]


def at_run_time(function: object) -> list[str]:
    """Return the names of a function's parameters at run time."""
    found = [p for p in inspect.signature(function).parameters.values() if p.name != "_more"]  # type: ignore[arg-type]
    ordered = [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [*ordered, *sorted({p.name for p in found} - set(ordered))]


@pytest.mark.parametrize("namespace", NAMESPACES, ids=[name or "top" for name in NAMESPACES])
def test_every_function_is_in_the_stub_with_documentation_and_signature(namespace: str) -> None:
    """The stub of a namespace has exactly its public functions; an overload set has several definitions."""
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
    """Methods of operators, overload sets and callables, and Python's operators, are listed; properties are marked."""
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
    """Type checkers refuse several unmarked definitions of one name."""
    for nodes in [*(n for space in NAMESPACES for n in stub_of(space).values()), *methods().values()]:
        marks = [any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list) for node in nodes]
        assert marks == [len(nodes) > 1] * len(nodes), nodes[0].name


def test_the_package_shows_type_checkers_the_stub() -> None:
    """The stub lists the names that ``__getattr__`` returns at run time."""
    source = Path(cd.__file__).read_text()
    assert "from candelabra._functions import *" in source
