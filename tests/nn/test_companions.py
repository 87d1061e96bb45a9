"""The packages `candelabra.nn`, `.optim` and `.utils.data` are found wherever they are installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import candelabra as cd
from candelabra._namespace import companions as _companions


def python(*lines: str, isolated: bool = False) -> str:
    """Return the output of a new interpreter; ``isolated``: its path has the core and no site-packages, so no nn."""
    core = str(Path(cd.__file__).parents[1])
    start = ["import sys", f"sys.path[:] = [p for p in sys.path if 'site-packages' not in p] + [{core!r}]"]
    code = "\n".join([*(start if isolated else []), *lines])
    options = ["-S"] if isolated else []
    done = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_attributes_import_the_packages() -> None:
    """`import candelabra as cd` is enough for cd.nn, cd.optim and cd.utils.data."""
    shown = python(
        "import candelabra as cd", "print(cd.nn.Linear.__name__, cd.optim.SGD.__name__, cd.utils.data.Subset.__name__)"
    )
    assert shown == "Linear SGD Subset"


def test_the_core_alone_does_not_import_nn() -> None:
    """`import candelabra` does not import nn."""
    assert python("import sys, candelabra", "print('candelabra.nn' in sys.modules)") == "False"


def test_without_the_distribution_the_error_says_what_to_install() -> None:
    """The import and the attribute both raise an error with the command to type."""
    for line in ("from candelabra import nn", "import candelabra; candelabra.nn"):
        shown = python("try:", f"    {line}", "except ModuleNotFoundError as error:", "    print(error)", isolated=True)
        assert shown == 'candelabra.nn is not installed: pip install "candelabra[nn]"'


def test_a_path_that_appears_later_is_found(tmp_path: Path) -> None:
    """A folder that is added to sys.path after the import of the core is searched, too."""
    package = tmp_path / "candelabra" / "optim"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("late = True\n")
    lines = ("import candelabra", f"sys.path.append({str(tmp_path)!r})", "print(candelabra.optim.late)")
    assert python(*lines, isolated=True) == "True"


def test_an_import_error_inside_a_package_is_not_hidden(tmp_path: Path) -> None:
    """If a package needs a module that is missing, the error names that module."""
    package = tmp_path / "candelabra" / "optim"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("import not_there_at_all\n")
    lines = (
        f"sys.path.append({str(tmp_path)!r})",
        "import candelabra",
        "try:",
        "    candelabra.optim",
        "except ModuleNotFoundError as error:",
        "    print(error.name)",
    )
    assert python(*lines, isolated=True) == "not_there_at_all"


def test_the_path_is_extended_once() -> None:
    """A folder occurs in __path__ once, however often it is searched."""
    path = list(cd.__path__)
    _companions.extend_path(path)
    assert path == list(cd.__path__)
    assert len(set(path)) == len(path)
