"""The index and the stubs are generated from syntax trees: what is read from a module, and what is written."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from candelabra.library import ENTRIES, METHODS, entries

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import generate  # noqa: E402 - after the path is set
from generate import __main__ as command  # noqa: E402
from generate.declarations import Distribution, read  # noqa: E402
from generate.index import index_source  # noqa: E402
from generate.stubs import functions_source, methods_source  # noqa: E402
from generate.tables import packages, tables_source  # noqa: E402

SOURCE = '''
from candelabra._records.callables import public
from candelabra._records.overloads import overloads
from candelabra._records.record import operator
from candelabra._records.rules import pointwise

from candelabra._operators import other


@operator(pointwise, aliases=("glow", "special.glow"))
def flicker(input: Tensor, dim: Dim = 0, keepdim: bool = False) -> Tensor:
    """Shine, now and then.

    More of it.
    """


@operator(pointwise, inplace=False, view=True, method=False)
def flicker_view(input: Tensor) -> Tensor:
    """A view."""


@operator(pointwise, inplace="argument", out=False, namespace="special")
def dim_light(input: Tensor) -> Tensor:
    """With an argument for the in-place form."""


@operator(other.rule, public=False)
def hidden_(input: Tensor) -> Pair:
    """Nobody sees it."""


@public(is_function=False, is_property=True)
def T(input: Tensor) -> Tensor:
    """A property."""


@public(is_function=False)
def small(input: Tensor) -> int:
    """A method without arguments."""


@public(guarded=False)
def bright(input: Tensor, other: Tensor) -> Tensor:
    """A method that takes a microsecond."""


@public(namespace="linalg", name="linalg_shine", method="shine", factory=True)
def shine(*size: Shape, dtype: Any = None, device: Any = None) -> Tensor:
    """A factory."""


@public(method=False, factory=("requires_grad",))
def spark(data: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A factory that takes one of the keywords."""


@public
def each(*tensors: Tensor) -> list[Tensor]:
    """Of several."""


blaze = overloads("blaze", flicker, (other.flare, "input"), inplace=True)
'''
OTHER = '''
def flare(input: Tensor, strength: float = 1.0) -> Tensor:
    """A function that is an overload and nothing else."""
'''


NAMESPACE = """
from candelabra.errors import LinAlgError as LinAlgError

_also = ("LinAlgError",)
"""


@pytest.fixture
def distribution(tmp_path: Path) -> Distribution:
    """Write a core with two modules."""
    folder = tmp_path / "core" / "src" / "candelabra"
    (folder / "_operators").mkdir(parents=True)
    (folder / "_operators" / "light.py").write_text(SOURCE)
    (folder / "_operators" / "other.py").write_text(OTHER)
    (folder / "linalg.py").write_text(NAMESPACE)
    (folder / "_namespace").mkdir()
    (folder / "_namespace" / "exports.py").write_text("EXPORTED: dict[str, str] = {'math': 'inf'}\n")
    (found,) = read({"core": folder})
    return found


def table(distribution: Distribution, name: str) -> dict[str, Any]:
    """Return a table of the generated index."""
    tree = ast.parse(index_source(distribution))
    assigned = [n for n in tree.body if isinstance(n, ast.AnnAssign) and ast.unparse(n.target) == name]
    assert assigned[0].value is not None
    return dict(ast.literal_eval(assigned[0].value))


def row(distribution: Distribution) -> list[str]:
    """Return the names that the index has of the module ``light``."""
    return list(table(distribution, "MODULES")["candelabra._operators.light"])


def test_what_a_module_declares(distribution: Distribution) -> None:
    """Operators, functions with aliases and namespaces, methods with in-place forms, properties, and the methods that
    are the declared functions are read."""
    operators, functions, methods, properties, unguarded = row(distribution)
    assert operators == "dim_light:1i flicker:3i flicker_view:1v hidden:1"  # with their outlines
    assert functions == "blaze bright each flicker flicker_view glow linalg.shine spark special.dim_light special.glow"
    assert methods == "T blaze blaze_ bright each flicker flicker_ glow glow_ shine small"
    assert properties == "T"
    assert unguarded == "bright small"


def test_signatures_in_stubs(distribution: Distribution) -> None:
    """They include the grammar's additions: NumPy's names, ``out``, the keywords of factories, variadic sizes."""
    text = functions_source(distribution, [distribution])
    added = "*, out: Any = None, axis: Any = None, keepdims: Any = None"
    plain = f"input: Tensor, dim: Dim = 0, keepdim: builtins.bool = False, {added}"
    assert f"def flicker({plain}) -> Tensor:" in text
    assert "def flicker_view(input: Tensor) -> Tensor:" in text
    assert "def each(*tensors: Tensor) -> builtins.list[Tensor]:" in text
    assert "from math import inf as inf" in text
    assert "dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False) -> Tensor:" in text
    assert "hidden" not in text
    assert f"@overload\ndef blaze({plain}) -> Tensor:" in text
    assert "@overload\ndef blaze(input: Tensor) -> Tensor:" in text
    shine = functions_source(distribution, [distribution], "linalg")
    assert "def shine(*_size: Any, dtype: Any = None, device: Any = None, out: Tensor | None = None" in shine
    assert "memory_format: Any = None, size: Any = None) -> Tensor:" in shine
    assert "from candelabra.errors import LinAlgError as LinAlgError" in shine
    special = functions_source(distribution, [distribution], "special")
    assert f"def glow({plain}) -> Tensor:" in special
    assert "def dim_light(input: Tensor, inplace: builtins.bool = False) -> Tensor:" in special


def test_methods_in_stubs(distribution: Distribution) -> None:
    """They lack the first parameter; in-place forms return a tensor and have no ``out``; properties are marked."""
    text = methods_source(distribution, [distribution])
    assert "    def flicker(self, dim: Dim = 0, keepdim: builtins.bool = False, *, out: Any = None" in text
    assert "    def flicker_(self, dim: Dim = 0, keepdim: builtins.bool = False, *, axis: Any = None" in text
    assert "    @property\n    def T(self) -> Tensor:" in text
    assert '"""In-place form of :func:`candelabra.flicker`."""' in text
    assert "More of it" not in text
    assert "More of it" in functions_source(distribution, [distribution])
    assert "    def __add__(self, other: Tensor | Number) -> Tensor:" in text


def test_an_option_that_is_no_literal_is_refused(tmp_path: Path) -> None:
    """The index is written without running the module; the error names module, line and option."""
    (tmp_path / "light.py").write_text(
        '@public(method=not_known)\ndef flicker(input: Tensor) -> Tensor:\n    """x"""\n'
    )
    text = "candelabra.light, line 1: the option method= has to be a literal: the index is written without running"
    with pytest.raises(ValueError, match=text):
        read({"core": tmp_path})


DEFERRING = """
if TYPE_CHECKING:
    from candelabra import flames
    from candelabra.flames import high as tall, low
    {more}
else:
    __getattr__ = deferred_imports(__name__)
"""


def test_deferred_imports_are_listed(tmp_path: Path) -> None:
    """A module that defers its imports has them in the index: modules, and attributes under their local names."""
    (tmp_path / "flames.py").write_text("high = low = 1\n")
    (tmp_path / "door.py").write_text(DEFERRING.format(more=""))
    (distribution,) = read({"core": tmp_path})
    expected = {
        "flames": ("candelabra.flames", ""), "low": ("candelabra.flames", "low"),
        "tall": ("candelabra.flames", "high"),
    }  # fmt: skip
    assert table(distribution, "DEFERRED_IMPORTS") == {"candelabra.door": expected}


def test_only_imports_of_names_are_deferred(tmp_path: Path) -> None:
    """Another statement below ``TYPE_CHECKING`` is an error that names its line."""
    (tmp_path / "door.py").write_text(DEFERRING.format(more="import os"))
    with pytest.raises(ValueError, match=r"candelabra\.door, line 5: expected ``from … import …`` alone"):
        read({"core": tmp_path})


def test_what_is_no_declaration_is_passed_over(tmp_path: Path) -> None:
    """Other decorators, other calls, and declarations inside functions are ignored."""
    (tmp_path / "light.py").write_text(
        "import x\n@x.public\ndef a(): ...\n@cache\ndef b(): ...\nc = x.overloads('c')\nd, e = overloads('d'), 1\n"
        "def f():\n    @public\n    def g(): ...\n"
    )
    (found,) = read({"core": tmp_path})
    assert found.declared == []


# -- the index of kernels ---------------------------------------------------------------------------------------------
KERNELS = """
NAME: Final = "steady"
SELECTORS: dict[str, int] = {"step": 1, "leap": 2}
def first(): ...
KERNELS: dict[str, object] = {NAME: first, **{name + form: 0 for name, _ in SELECTORS.items() for form in ("", "_")}}
KERNELS["late"] = 2
FACTORIES = {"made": 1} | {each.__name__: each for each in (first,)} | SELECTORS
OTHER = {"no": "kernel"}
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package with two folders of tables."""
    package = tmp_path / "backends" / "glow" / "src" / "candelabra_glow"
    for folder in ("kernels", "expressions"):
        (package / folder).mkdir(parents=True)
        (package / folder / "__init__.py").write_text("KERNELS = EXPRESSIONS = {}")
    (package / "kernels" / "glowing.py").write_text(KERNELS)
    (package / "expressions" / "plain.py").write_text('EXPRESSIONS = {name: 1 for name in ("exp", "log")}')
    return package


def test_the_index_of_kernels_has_the_keys_of_tables(package: Path) -> None:
    """They follow from literals, names of functions, and loops over both."""
    assert list(packages(package.parents[3])) == [package]
    scope: dict[str, dict[str, str]] = {}
    exec(tables_source(package), scope)  # noqa: S102 - a generated module
    assert scope["KERNELS"] == {"glowing": "first late leap leap_ made steady step step_"}
    assert scope["EXPRESSIONS"] == {"plain": "exp log"}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("KERNELS = made()", r"kernels/glowing.py, line 1: the keys of KERNELS have to .*: made\(\) is no dictionary"),
        ("\nKERNELS = {made(): 1}", r"line 2: the keys of KERNELS have to follow from literals, .* is no literal"),
    ],
)
def test_keys_that_only_code_shows_are_refused(package: Path, source: str, text: str) -> None:
    """The index is written without running the module, so the error names the line."""
    (package / "kernels" / "glowing.py").write_text(source)
    with pytest.raises(ValueError, match=text):
        tables_source(package)


def test_a_kernel_in_two_modules_is_refused(package: Path) -> None:
    """One would hide the other."""
    (package / "kernels" / "twin.py").write_text('KERNELS = {"late": 1}')
    with pytest.raises(ValueError, match="kernels: 'late' is defined in both glowing and twin: remove one"):
        tables_source(package)


def test_only_what_has_changed_is_written(distribution: Distribution, capsys: pytest.CaptureFixture[str]) -> None:
    """Index and stubs are written the first time, nothing the second time, and then the changed files."""
    root = distribution.root.parents[2]
    (root / "core" / "pyproject.toml").touch()
    written = {path.relative_to(distribution.root).as_posix() for path in generate.write(root)}
    assert written == {"_index/core.py", "_functions.pyi", "_methods.pyi", "linalg.pyi"}
    assert generate.write(root) == []
    (distribution.root / "_functions.pyi").write_text("")
    assert [path.name for path in generate.write(root, only=root / "core")] == ["_functions.pyi"]
    (distribution.root / "_functions.pyi").write_text("")
    assert generate.write(root, only=root / "nn") == []


def test_a_distribution_without_public_names_needs_no_other_sources(package: Path) -> None:
    """Its index is written without reading those of all distributions."""
    root = package.parents[3]
    (root / "core").mkdir()
    (root / "core" / "pyproject.toml").touch()
    assert generate.write(root, only=root / "backends" / "glow") == [package / "_index" / "tables.py"]
    assert generate.write(root, only=root / "backends" / "glow") == []


def test_the_command_checks_and_writes(
    distribution: Distribution, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """``--check`` names the stale files and the command to run, and exits with 1."""
    root = distribution.root.parents[2]
    (root / "core" / "pyproject.toml").touch()
    parsed = SimpleNamespace(check=True)
    monkeypatch.setattr(command.argparse.ArgumentParser, "parse_args", lambda self: parsed)
    monkeypatch.setattr(command, "ROOT", root)
    monkeypatch.setattr(command, "generated", lambda: generate.generated(root))
    monkeypatch.setattr(command, "write", lambda: generate.write(root))
    assert command.main() == 1
    error = capsys.readouterr().err
    assert "generate: core/src/candelabra/_index/core.py is not current: run `make index`" in error
    parsed.check = False
    assert command.main() == 0
    assert "generate: core/src/candelabra/_index/core.py" in capsys.readouterr().out
    parsed.check = True
    assert command.main() == 0


def test_this_repository_is_read_as_it_runs() -> None:
    """The names read from the sources equal the public names of the registry."""
    assert entries()
    declared = [d for distribution in generate.distributions() for d in distribution.declared]
    ours = [name for name, entry in ENTRIES.items() if entry.declared_in.startswith("candelabra.")]
    assert sorted(name for d in declared for name in d.public_names()) == sorted(ours)
    forms = {name: form for name, (entry, form) in METHODS.items() if entry.declared_in.startswith("candelabra.")}
    read = {name: form for d in declared for name, form in d.methods().items()}
    assert read == {name: "function" if form == "method" else form for name, form in forms.items()}
