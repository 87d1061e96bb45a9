"""Editors see every function and method: the generated stubs name them all, and the package shows them."""

from __future__ import annotations

import ast
from pathlib import Path

import candelabra as cd
from candelabra.fronts.registry import FRONTS
from candelabra.namespace import data_model, public_names
from candelabra.operator.record import OPERATORS

ROOT = Path(cd.__file__).parent


def names(nodes: list[ast.stmt]) -> dict[str, ast.stmt]:
    """What a list of statements defines or imports."""
    found: dict[str, ast.stmt] = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, (ast.ImportFrom, ast.Import)):
            found.update({alias.asname or alias.name: node for alias in node.names})
    return found


def test_every_function_is_in_the_stub_with_its_documentation() -> None:
    """A public function is imported from where it is written, or stands there with signature and docstring."""
    stub = names(ast.parse((ROOT / "_functions.pyi").read_text()).body)
    assert set(public_names()) <= set(stub)
    for node in stub.values():
        assert not isinstance(node, ast.FunctionDef) or ast.get_docstring(node)


def test_every_method_is_in_the_stub_with_its_documentation() -> None:
    """Methods of records and fronts, and Python's operators, stand in the class that Tensor inherits from, typed."""
    (methods,) = (n for n in ast.parse((ROOT / "_methods.pyi").read_text()).body if isinstance(n, ast.ClassDef))
    stub = names(methods.body)
    wanted = {f.method for f in FRONTS.values() if f.method} | set(data_model())
    wanted |= {r.name for r in OPERATORS.values() if r.public and r.method is True}
    wanted |= {r.name + "_" for r in OPERATORS.values() if r.public and r.inplace}
    assert wanted <= set(stub)
    assert all(ast.get_docstring(n) for n in stub.values() if isinstance(n, ast.FunctionDef))


def test_the_package_shows_type_checkers_the_stub() -> None:
    """What ``__getattr__`` finds at run time is what the stub says, for those who only read."""
    source = (ROOT / "__init__.py").read_text()
    assert "from candelabra._functions import *" in source
