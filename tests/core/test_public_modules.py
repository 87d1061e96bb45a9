"""The public modules of the core list their names, and internal modules are not exposed."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import warnings
from pathlib import Path

import candelabra as cd
import pytest
from candelabra._namespace.moved import INSTEAD, MOVED

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "core/src"
OUTSIDE = sorted(
    path
    for folder in ("nn/src", "distributed/src", "conformance/src", "backends", "examples")
    for path in (ROOT / folder).rglob("*.py")
    if "src" in path.parts or folder == "examples"
)
PACKAGES = ("candelabra.nn", "candelabra.optim", "candelabra.utils")


def public_modules() -> list[str]:
    """Return every module of ``candelabra`` whose import path has no component with an underscore."""
    found = []
    for source in (CORE, ROOT / "nn/src", ROOT / "distributed/src", ROOT / "conformance/src"):
        for path in sorted((source / "candelabra").rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if not any(part.startswith("_") for part in name.split(".")):
                found.append(name)
    return found


@pytest.mark.parametrize("name", public_modules())
def test_a_public_module_says_what_is_public(name: str) -> None:
    """``__all__`` has existing, unique and public names, and equals ``dir()``."""
    module = importlib.import_module(name)
    names = list(module.__all__)
    assert names
    assert len(set(names)) == len(names)
    assert [n for n in names if not hasattr(module, n)] == []
    assert [n for n in names if n.startswith("_") and not n.endswith("__")] == []
    assert sorted(names) == dir(module)


def test_dir_shows_no_internal_module() -> None:
    """``dir(candelabra)`` has functions, classes, constants, and modules that are documented as public."""
    modules = {name for name in dir(cd) if isinstance(getattr(cd, name), type(sys))}
    assert modules - {"__config__"} <= {name.split(".")[1] for name in public_modules() if "." in name}


def test_internal_modules_are_imported_in_the_core_only() -> None:
    """nn, backends, conformance and examples use candelabra.library, candelabra.backend and the public names."""
    assert OUTSIDE
    assert {str(path.relative_to(ROOT)): found for path in OUTSIDE if (found := internal_imports(path))} == {}


def test_an_import_of_an_internal_module_is_found(tmp_path: Path) -> None:
    """The search sees both forms of the statement, also inside functions."""
    source = "def f():\n    import candelabra._keys\n    from candelabra._tensor import Tensor\n# candelabra._layout\n"
    (tmp_path / "example.py").write_text(source)
    assert internal_imports(tmp_path / "example.py") == ["candelabra._keys", "candelabra._tensor"]


def internal_imports(path: Path) -> list[str]:
    """Return the internal modules of the core that a file imports. Only files that contain such a name are parsed."""
    text = path.read_text(encoding="utf-8")
    found: list[str] = []
    for node in ast.walk(ast.parse(text)) if "candelabra._" in text else ():
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        found += [n for n in names if n.startswith("candelabra._")]
    return found


@pytest.mark.parametrize("old", sorted(MOVED))
def test_old_import_paths_work_and_warn(old: str) -> None:
    """In a new interpreter the old path leads to the new names, with a warning that has the new path."""
    now = INSTEAD.get(MOVED[old], MOVED[old])
    program = (
        f"import importlib, warnings\nwith warnings.catch_warnings(record=True) as caught:\n"
        f"    warnings.simplefilter('always')\n    old = importlib.import_module({old!r})\n"
        f"new = importlib.import_module({MOVED[old]!r})\n"
        "names = [n for n in dir(new) if not n.startswith('_')]\n"
        "assert all(getattr(old, n) is getattr(new, n) for n in names), names\n"
        "print(caught[-1].category.__name__, caught[-1].message)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"DeprecationWarning the module {old} has moved: import from {now} instead")


def test_an_unknown_module_is_still_unknown() -> None:
    """The finder of moved modules handles only these."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ModuleNotFoundError, match=r"No module named 'candelabra\.dispatch'"):
            importlib.import_module("candelabra.dispatch")
