"""The index of public names agrees with the modules; a stale or missing index is an error that names the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import candelabra as cd
import pytest
from candelabra import Tensor
from candelabra._namespace import index
from candelabra._namespace.publishing import LazyMethod, find_method
from candelabra.library import ENTRIES, METHODS, OPERATORS, entry_named

TABLES = sorted({p.stem for root in cd.__path__ for p in Path(root, "_index").glob("[a-z]*.py")})


def test_the_index_is_the_registry() -> None:
    """For each module, the index lists exactly the declared operators with their outlines, functions and methods, and
    which of these are properties or unguarded."""
    index.load_all()
    indexed = {m: row for table in TABLES for m, row in import_module(f"candelabra._index.{table}").MODULES.items()}
    declared: dict[str, tuple[set[str], ...]] = defaultdict(lambda: (set(), set(), set(), set(), set()))
    for name, record in OPERATORS.items():
        outline = f"{len(record.schema.parameters)}{'v' * record.view}{'i' * record.inplace}"
        declared[record.declared_in][0].add(f"{name}:{outline}")
    for name, entry in ENTRIES.items():
        declared[entry.declared_in][1].add(name)
    for name, (entry, form) in METHODS.items():
        declared[entry.declared_in][2].add(name)
        if entry.is_property:
            declared[entry.declared_in][3].add(name)
        elif form == "method":
            declared[entry.declared_in][4].add(name)
    ours = {module: names for module, names in declared.items() if module.startswith("candelabra.")}
    assert {module: tuple(set(words.split()) for words in row) for module, row in indexed.items()} == ours


FAILING_PLUGIN = """
from candelabra import _journal as journal
with journal.Recording() as changes:
    import candelabra._operators.special.bessel
changes.undo()
import candelabra as cd
print(round(cd.special.bessel_j0(cd.zeros(1)).item(), 6))
"""


def test_a_library_module_that_a_failing_plugin_imports_stays() -> None:
    """The changes of a plugin that fails to load are reverted, but not the declarations of the library."""
    done = subprocess.run([sys.executable, "-c", FAILING_PLUGIN], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1.0"]


FINDING = """
import candelabra as cd
from candelabra._namespace import index
from candelabra._records import lookup, registry
missing = [name for name in index.FUNCTIONS_IN if lookup.public_function(name) is None]
missing += [n for n, place in index.OPERATORS_IN.items() if place != registry.OPERATORS[n].declared_in]
missing += [name for name in index.METHODS_IN if getattr(cd.Tensor, name, None) is None]
print(*missing)
"""


def ran(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter."""
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )


def test_what_the_index_says_is_found_where_it_says() -> None:
    """In a new interpreter every name leads to the module that declares it, whatever was imported before."""
    done = ran(FINDING)
    assert (done.stdout.split(), done.stderr) == ([], "")


def test_a_name_imports_what_declares_it_and_no_more() -> None:
    """Access to ``exp`` imports its module, not the others."""
    homes = {index.FUNCTIONS_IN[name] for name in ("exp", "searchsorted")}
    loaded = set(ran("import sys, candelabra; candelabra.exp; print(*sys.modules)").stdout.split())
    assert homes & loaded == {index.FUNCTIONS_IN["exp"]}


# -- a stale index ----------------------------------------------------------------------------------------------------
def test_an_operator_that_its_module_does_not_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the module, the operator and the command; the module's other operators work."""
    home = index.OPERATORS_IN["exp"]
    monkeypatch.setitem(index.OPERATORS_IN, "flicker", home)
    with pytest.raises(
        index.StaleIndex, match=f"not current: {home} declares no operator 'flicker'.* run `make index`"
    ):
        OPERATORS["flicker"]
    assert OPERATORS["exp"].name == "exp"


def test_a_function_that_its_module_does_not_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A specific error is raised instead of a missing attribute."""
    home = index.FUNCTIONS_IN["exp"]
    monkeypatch.setitem(index.FUNCTIONS_IN, "flicker", home)
    with pytest.raises(index.StaleIndex, match=f"{home} declares no function 'flicker'.* run `make index`"):
        cd.flicker  # noqa: B018
    assert entry_named("exp") is not None


def test_a_method_that_its_module_does_not_declare(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attribute is missing, and the error says why."""
    home = index.METHODS_IN["exp"]
    text = f"{home} declares no method 'flicker'.* run `make index`"

    class Asked:
        flicker = LazyMethod("flicker", lambda: find_method("flicker", home))

    with pytest.raises(AttributeError, match=text):
        Asked().flicker  # noqa: B018
    monkeypatch.setitem(index.METHODS_IN, "flicker", home)
    assert entry_named("Tensor.flicker") is None
    assert not hasattr(Tensor, "flicker")


def test_a_missing_index_names_the_command(tmp_path: Path) -> None:
    """The package lacks its folder ``_index``, as a checkout before generation does."""
    core = Path(cd.__file__).parent
    copy = tmp_path / "candelabra"
    copy.mkdir()
    for part in core.iterdir():
        if part.name != "_index":
            (copy / part.name).symlink_to(part)
    alone = "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p and '/src' not in p]\n"
    done = ran(alone + f"sys.path.insert(0, {str(tmp_path)!r})\nimport candelabra")
    assert done.returncode == 1
    assert "candelabra/_index, is missing: in a checkout run `make index`" in done.stderr


def test_a_name_that_a_namespace_lacks() -> None:
    """The error has the names of the package and the attribute."""
    import candelabra.linalg

    with pytest.raises(AttributeError, match=r"module 'candelabra\.linalg' has no attribute 'inverse_of_nothing'"):
        _ = candelabra.linalg.inverse_of_nothing
