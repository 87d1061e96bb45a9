"""``make cuda-check`` without a package index: collected wheels, missing packages, installation."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import candelabra as cd
import pytest

from tests.tools.machines import machine, wheel

ROOT = Path(__file__).resolve().parents[2]
CHECKED = subprocess.run(
    ["make", "--no-print-directory", "--eval", "checked: ; @echo $(CHECKED)", "checked"],
    cwd=ROOT, capture_output=True, text=True, check=True,
).stdout.split()  # fmt: skip
"""The folders of the distributions that the check installs."""
OF_MACHINE = ("numpy", "scipy", "cupy-cuda13x", "cuda-pathfinder", "cuda-bindings", "nvidia-cuda-nvrtc", "pip")
Load = Callable[[str], ModuleType]


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Return a function that imports modules of ``tools`` by name."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module


# -- requirements -----------------------------------------------------------------------------------------------------
def test_what_is_needed_is_what_the_projects_require(tools: Load) -> None:
    """These are third-party packages of builds and tests, without OpenCL's; CuPy is the machine's."""
    found = {each.requirement.name: each for each in tools("cuda_requirements").requirements_of(ROOT, CHECKED)}
    assert {"pluggy", "numpy", "scipy", "ml_dtypes", "array-api-compat", "hatchling", "pytest", "rich"} <= set(found)
    assert not any(name.startswith(("candelabra", "cupy", "pyopencl", "torch")) for name in found)
    assert found["hatchling"].by.startswith("the build of ")


def test_what_is_large_is_never_collected(tools: Load) -> None:
    """CuPy with CUDA's libraries, PyTorch, NumPy and SciPy are the machine's own."""
    of_machine = tools("cuda_requirements").of_machine
    names = ("numpy", "SciPy", "torch", "cupy-cuda13x", "cuda_bindings", "nvidia-cublas", "triton")
    assert all(of_machine(name) for name in names)
    assert not any(of_machine(name) for name in ("pluggy", "ml_dtypes", "numpydoc", "cudatoolbox"))


class Package:
    """A distribution with a version and requirements."""

    def __init__(self, name: str, version: str, *requires: str) -> None:
        self.metadata, self.version, self.requires = {"Name": name}, version, list(requires)


def test_everything_that_is_missing_is_found_at_once(tools: Load) -> None:
    """This includes requirements of installed packages, and installed packages of a wrong version."""
    requirements = tools("cuda_requirements")
    there = {
        "a": [Package("a", "1", 'b; python_version >= "3"', 'c; python_version < "3"', 'd>=2; extra == "more"')],
        "b": [Package("b", "1", "e<2", "a")], "e": [Package("e", "2"), Package("e", "3")],
    }  # fmt: skip
    wanted = [
        requirements.Required(requirements.Requirement(line), "us") for line in ("a[more]>=1", "f", "a[more]>=1", "b")
    ]
    found = requirements.missing(wanted, lambda name: iter(there.get(name, [])))
    assert [(str(each), versions) for each, versions in found] == [
        ("f (for us)", []), ("d>=2 (for a)", []), ("e<2 (for b)", ["2", "3"]),
    ]  # fmt: skip
    there["e"].append(Package("e", "1"))
    assert requirements.missing(wanted[-1:], lambda name: iter(there.get(name, []))) == []


def test_a_wheel_for_another_python_is_none(tools: Load, tmp_path: Path) -> None:
    """Installed packages take precedence over wheels for this Python in the folder."""
    made = wheel("pluggy", tmp_path)
    find = tools("cuda_requirements").finder(tmp_path)
    assert [each.version for each in find("pluggy")] == [distribution("pluggy").version] * 2
    made.rename(tmp_path / made.name.replace("py3-none-any", "cp39-cp39-manylinux_2_28_x86_64"))
    assert len(list(tools("cuda_requirements").finder(tmp_path)("pluggy"))) == 1
    assert list(find("no-such-distribution")) == []


# -- collecting -------------------------------------------------------------------------------------------------------
def test_platforms_are_all_whose_wheels_run_there(tools: Load) -> None:
    """A glibc supports wheels built for an older one, under either name."""
    platforms = tools("cuda_wheels").platforms
    found = platforms("manylinux_2_28_x86_64")
    assert found[0] == "manylinux_2_28_x86_64"
    assert {"manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64"} <= set(found)
    assert "manylinux2014_aarch64" in platforms("manylinux_2_17_aarch64")
    assert "manylinux2014_x86_64" not in platforms("manylinux_2_12_x86_64")
    assert platforms("macosx_14_0_arm64") == ["macosx_14_0_arm64"]


@pytest.fixture
def pip(tools: Load, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Replace pip: it resolves to two distributions, one of which is large; return its arguments."""
    asked: list[tuple[str, ...]] = []

    def ask(*words: str) -> None:
        asked.append(words)
        if "--report" in words:
            found = [{"metadata": {"name": name, "version": "1"}} for name in ("numpy", "pluggy")]
            Path(words[words.index("--report") + 1]).write_text(json.dumps({"install": found}))
        else:
            (Path(words[words.index("--dest") + 1]) / "pluggy-1-py3-none-any.whl").write_bytes(bytes(3 << 20))

    monkeypatch.setattr(tools("cuda_wheels"), "pip", ask)
    return asked


def test_wheels_are_collected_for_the_other_machine(
    tools: Load, pip: list[tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wheels have pip's versions for that Python and replace existing ones; the machine's own packages are omitted."""
    (tmp_path / "old-1-py3-none-any.whl").write_text("")
    words = ["--to", str(tmp_path), "--python-version", "3.13", *CHECKED]
    assert tools("cuda_wheels").main(words) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["pluggy-1-py3-none-any.whl"]
    assert "1 wheels, 3.0 MiB, for Python 3.13" in capsys.readouterr().out
    resolving, downloading = pip
    assert {"--dry-run", "--only-binary=:all:", "3.13", "manylinux_2_28_x86_64"} <= set(resolving)
    assert downloading[-1] == "pluggy==1"
    assert "--no-deps" in downloading


def test_too_many_wheels_are_an_error(
    tools: Load, pip: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Their size is limited, because they are copied; pip's own errors are passed on."""
    monkeypatch.setattr(tools("cuda_wheels"), "LARGEST", 2 << 20)
    assert tools("cuda_wheels").main(["--to", str(tmp_path), *CHECKED]) == 1
    assert f"{tmp_path} has more than 2 MiB" in capsys.readouterr().err

    def refuse(*words: str) -> None:
        raise subprocess.CalledProcessError(7, words)

    monkeypatch.setattr(tools("cuda_wheels"), "pip", refuse)
    assert tools("cuda_wheels").main(["--to", str(tmp_path), *CHECKED]) == 7


# -- the environment --------------------------------------------------------------------------------------------------
def test_an_environment_shows_what_its_python_has(tools: Load, tmp_path: Path) -> None:
    """This holds also if that is a virtual environment, and for code that searches libraries in its folders."""
    python = machine(tmp_path / "machine", ["pluggy", "pip"])
    tool = ROOT / "tools" / "cuda_environment.py"
    subprocess.run([str(python), str(tool), str(tmp_path / "made")], check=True)
    program = "import pluggy, pip, site, sys; print(pluggy.__file__, sys.prefix, *site.getsitepackages(), sep='\\n')"
    done = subprocess.run([str(tmp_path / "made" / "bin" / "python"), "-c", program], capture_output=True, text=True)
    file, prefix, *folders = done.stdout.splitlines()
    below = python.parents[1] / "lib"
    assert file.startswith(str(below))
    assert prefix == str(tmp_path / "made")
    assert any(folder.startswith(str(below)) for folder in folders)


def test_an_environment_of_another_making_is_left_alone(
    tools: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An environment that was set up from a package index is removed only by hand."""
    (tmp_path / ".packages").write_text("")
    assert tools("cuda_environment").main(tmp_path) == 1
    assert "was set up from a package index: `make clean` removes it" in capsys.readouterr().err
    assert (tmp_path / ".packages").exists()


def test_an_unusable_python_says_so(
    tools: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be too old, or unable to install packages."""
    tool = tools("cuda_environment")

    def refuse(*words: object, **options: object) -> None:
        raise subprocess.CalledProcessError(1, "ensurepip")

    monkeypatch.setattr(tool.venv, "create", refuse)
    assert tool.main(tmp_path) == 1
    assert "has neither pip nor ensurepip, so that nothing can be installed" in capsys.readouterr().err
    monkeypatch.setattr(tool, "OLDEST", (4, 0))
    assert tool.main(tmp_path) == 1
    assert "PYTHON=… names one from 3.11 on" in capsys.readouterr().err


# -- installing -------------------------------------------------------------------------------------------------------
def test_what_is_missing_is_named_before_anything_is_installed(
    tools: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All missing packages are listed, each with the package that requires it."""
    install = tools("cuda_install")
    monkeypatch.setattr(
        install, "finder", lambda folder: lambda name: iter([Package("rich", "1")] if name == "rich" else [])
    )
    monkeypatch.setattr(install.subprocess, "run", lambda *words, **options: pytest.fail("something was installed"))
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert install.main(["--wheels", str(tmp_path), *CHECKED]) == 1
    said = capsys.readouterr().err
    assert "- numpy>=2.1 (for candelabra-cpu): install it on this machine" in said
    assert "- pluggy>=1.5 (for candelabra): collect it by `make cuda-wheels PYTHON_VERSION=" in said
    assert "- rich>=13 (for candelabra-conformance); there is 1: collect it by `make cuda-wheels" in said
    assert "- CuPy>=14.0: install it on this machine, with CUDA's libraries (" in said
    assert said.startswith(f"{len(said.splitlines()) - 1} missing for make cuda-check on {sys.executable}:")


def test_a_folder_that_is_none_says_what_fills_one(tools: Load, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder is filled on a machine with a package index."""
    assert tools("cuda_install").main(["--wheels", "no/such/folder", *CHECKED]) == 1
    assert "no/such/folder is not a folder: `make cuda-wheels` creates one" in capsys.readouterr().err


def test_cupy_and_its_compiler_are_looked_at(tools: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are loaded, since they may be installed and unusable: an old CuPy, CUDA without its compiler."""
    cuda = tools("cuda_install").cuda
    assert cuda() == []
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(__version__="13.6.0"))
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs.nvrtc", None)
    old, compiler = cuda()
    assert old == "CuPy>=14.0; there is 13.6.0: install it on this machine"
    assert compiler.startswith("NVRTC, a library of CUDA: install it on this machine (")


def test_what_pip_refuses_is_its_own_error(tools: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip has already printed the reason."""
    install = tools("cuda_install")

    def refuse(words: list[str], check: bool) -> None:
        assert "--no-index" in words
        raise subprocess.CalledProcessError(7, words)

    monkeypatch.setattr(install.subprocess, "run", refuse)
    assert install.main(["--wheels", str(tmp_path), *CHECKED]) == 7


# -- end to end -------------------------------------------------------------------------------------------------------
def offline() -> list[str]:
    """Return the prefix that runs a command without a network, where that is allowed."""
    words = ["unshare", "--net", "--map-root-user"]
    allowed = shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True).returncode == 0
    return words if allowed else []


@pytest.mark.thorough
@pytest.mark.skipif(cd.cuda.is_available(), reason="there is a GPU, so all would run")
def test_a_machine_without_an_index_gets_as_far_as_its_gpu(tools: Load, tmp_path: Path) -> None:
    """A clone, the wheels, and a Python with CuPy, NumPy and SciPy suffice: all is installed, and there is no GPU."""
    requirements = tools("cuda_requirements")
    names: dict[str, None] = {}

    def find(name: str) -> Any:
        names[name] = None
        return requirements.finder(tmp_path)(name)

    assert requirements.missing(requirements.requirements_of(ROOT, CHECKED), find) == []
    (tmp_path / "wheels").mkdir()
    for name in names:
        if not requirements.of_machine(name):
            wheel(name, tmp_path / "wheels")
    left = shutil.ignore_patterns(".*", "tests", "docs", "__pycache__", "cuda-wheels", "dist")
    shutil.copytree(ROOT, tmp_path / "clone", ignore=left)
    words = [f"PYTHON={machine(tmp_path / 'machine', OF_MACHINE)}", f"WHEELS={tmp_path / 'wheels'}"]
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "PYTHON", "PIP", "ARGS"))}
    done = subprocess.run(
        [*offline(), "make", "cuda-check", *words], cwd=tmp_path / "clone", env=surroundings, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert "cuda-check cannot run on cuda:0: no NVIDIA driver was found" in done.stderr, done.stdout + done.stderr
    assert "Error 3" in done.stderr
    (packages,) = (tmp_path / "clone" / ".venv").glob("lib/python*/site-packages")
    assert (packages / "pluggy").exists()
    assert not (packages / "numpy").exists()
