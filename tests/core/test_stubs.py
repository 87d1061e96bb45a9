"""Editors see every function and method: the generated stubs name them all, and the package shows them."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import candelabra as cd
import pytest
from candelabra._namespace import index
from candelabra._namespace.publishing import data_model, methods_of, public_names
from candelabra._operators.fronts.registry import FRONTS
from candelabra._records.record import OPERATORS

ROOTS = [Path(path) for path in cd.__path__]
NAMESPACES = sorted({name.rpartition(".")[0] for name in index.FUNCTIONS_IN})


def names(nodes: list[ast.stmt]) -> dict[str, ast.stmt]:
    """What a list of statements defines or imports."""
    found: dict[str, ast.stmt] = {}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        elif isinstance(node, (ast.ImportFrom, ast.Import)):
            found.update({alias.asname or alias.name: node for alias in node.names})
    return found


def stubs(pattern: str) -> list[ast.Module]:
    """Every stub of that name, in whichever distribution."""
    return [ast.parse(path.read_text()) for root in ROOTS for path in sorted(root.glob(pattern))]


@pytest.mark.parametrize("namespace", NAMESPACES, ids=[name or "top" for name in NAMESPACES])
def test_every_function_is_in_the_stub_with_its_documentation(namespace: str) -> None:
    """A public function is imported from where it is written, or stands there with signature and docstring."""
    pattern = f"{namespace.replace('.', '/')}/__init__.pyi" if namespace else "_functions*.pyi"
    stub = {name: node for module in stubs(pattern) for name, node in names(module.body).items()}
    wanted = {name.rpartition(".")[2] for name in public_names() if name.rpartition(".")[0] == namespace}
    assert wanted <= set(stub)
    for node in stub.values():
        assert not isinstance(node, ast.FunctionDef) or ast.get_docstring(node)


def test_every_method_is_in_the_stub_with_its_documentation() -> None:
    """Methods of records and fronts, and Python's operators, stand in the classes that Tensor inherits from, typed."""
    classes = [n for module in stubs("_methods*.pyi") for n in module.body if isinstance(n, ast.ClassDef)]
    stub = {name: node for each in classes for name, node in names(each.body).items()}
    wanted = {f.method for f in FRONTS.values() if f.method} | set(data_model()) | set(index.METHODS_IN)
    wanted |= {name for r in OPERATORS.values() for name in methods_of(r)}
    assert wanted <= set(stub)
    assert all(ast.get_docstring(n) for n in stub.values() if isinstance(n, ast.FunctionDef))


def test_the_package_shows_type_checkers_the_stub() -> None:
    """What ``__getattr__`` finds at run time is what the stub says, for those who only read."""
    source = Path(cd.__file__).read_text()
    assert "from candelabra._functions import *" in source


FINDING = """
import candelabra as cd
from candelabra import index, namespace
missing = [name for name in index.FUNCTIONS_IN if namespace.public_function(name) is None]
missing += [n for n, place in index.OPERATORS_IN.items() if place != namespace.OPERATORS[n].declared.__module__]
missing += [name for name in index.METHODS_IN if getattr(cd.Tensor, name, None) is None]
print(*missing)
"""


def test_what_the_index_says_is_found_where_it_says() -> None:
    """In a fresh interpreter every name leads to a module that declares it, whatever was imported before."""
    done = subprocess.run([sys.executable, "-c", FINDING], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_name_imports_what_declares_it_and_no_more() -> None:
    """Asking for ``exp`` brings its family, not the others."""
    program = "import sys, candelabra; candelabra.exp; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "candelabra._operators.primitives.pointwise" in done.stdout.split()
    assert "candelabra._operators.sorting.sort" not in done.stdout.split()


def test_a_wrong_index_is_named() -> None:
    """A method that its module does not declare is an error that says so, instead of a missing attribute."""
    from candelabra._namespace.publishing import LazyMethod, _finder

    class Asked:
        method = LazyMethod("method", _finder("method", "candelabra._operators.primitives.pointwise"))

    with pytest.raises(
        AttributeError,
        match=r"says that candelabra._operators.primitives.pointwise declares Tensor.method, but it does",
    ):
        Asked().method  # noqa: B018
