"""Every distribution is built by `pip`, installed into empty environments, and used there.

This module does not import candelabra: the tests run what was installed, in a separate interpreter and away from the
source.
"""

import filecmp
import os
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(
    path.parent
    for pattern in ("*/pyproject.toml", "backends/*/pyproject.toml")
    for path in ROOT.glob(pattern)
    if (path.parent / "src").is_dir()
)
NAMES = [folder.relative_to(ROOT).as_posix() for folder in FOLDERS]

COMPILED = {".pyc", ".so"}
"""The suffixes of files that a checkout has compiled for itself, and that no wheel takes from there."""

each_distribution = pytest.mark.parametrize("folder", FOLDERS, ids=NAMES)

TRAINING = """
import candelabra as cd
from candelabra import nn, optim

cd.manual_seed(0)
x = cd.randn(64, 3)
y = x @ cd.tensor([[1.0], [-2.0], [0.5]]) + 0.3
model = nn.Linear(3, 1)
optimizer = optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(20):
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 10, losses
print(cd.__file__, nn.__file__, optim.__file__, sep="\\n")
"""


BUILDING = """
import os, pathlib, sys, tarfile
from hatchling.build import build_sdist, build_wheel

for folder, out in zip(sys.argv[1::2], sys.argv[2::2]):
    os.chdir(folder)
    made = build_sdist(out)
    with tarfile.open(pathlib.Path(out, made)) as archive:
        archive.extractall(pathlib.Path(out, "sdist"), filter="data")
    os.chdir(pathlib.Path(out, "sdist", made.removesuffix(".tar.gz")))
    build_wheel(out)
"""


@dataclass(frozen=True)
class Environment:
    """An environment without the developer's packages, and an empty working folder."""

    folder: Path

    @property
    def programs(self) -> Path:
        """Return the folder of its interpreter and console scripts."""
        return self.folder / ("Scripts" if os.name == "nt" else "bin")

    @classmethod
    def empty(cls, folder: Path) -> "Environment":
        """Create the environment without its own pip, whose installation would need most of the time."""
        venv.create(folder, with_pip=False, symlinks=os.name != "nt")
        (folder / "elsewhere").mkdir()
        return cls(folder)

    def install(self, *requirements: str | Path) -> None:
        """Install with the pip that runs the tests, as a user would: with requirements, from the index."""
        pip = [sys.executable, "-m", "pip", "--python", str(self.folder), "install", "--quiet"]
        completed = subprocess.run([*pip, *map(str, requirements)], capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stdout + completed.stderr

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of its programs with only installed packages on sys.path."""
        surroundings = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "CANDELABRA"))
        }
        return subprocess.run(
            [str(self.programs / program), *arguments],
            cwd=self.folder / "elsewhere",
            env=surroundings,
            capture_output=True,
            text=True,
            check=False,
        )


def declared(folder: Path) -> dict[str, Any]:
    """Return the `project` table of a distribution."""
    table: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def backend(folder: Path) -> str:
    """Return the build backend of a distribution."""
    name: str = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["build-backend"]
    return name


def metadata(wheel: Path) -> Message:
    """Return the metadata that an installer reads from a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def without_extras(requirements: list[str]) -> list[str]:
    """Return those requirements that hold without any extra."""
    return [requirement for requirement in requirements if "extra ==" not in requirement]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """Build each distribution's sdist, and its wheel from it, as `python -m build` does, in one process for all."""
    to = {folder: tmp_path_factory.mktemp(folder.name) for folder in FOLDERS}
    assert all(backend(folder) == "hatchling.build" for folder in FOLDERS)
    pairs = [str(path) for pair in to.items() for path in pair]
    completed = subprocess.run([sys.executable, "-c", BUILDING, *pairs], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return {folder: next(out.glob("*.whl")) for folder, out in to.items()}


@pytest.fixture(scope="module")
def installed(wheels: dict[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Install every wheel, and the packages of the extra `all`, in one environment."""
    environment = Environment.empty(tmp_path_factory.mktemp("everything") / "env")
    core = f"candelabra[all] @ {wheels[ROOT / 'core'].as_uri()}"
    environment.install(core, *(wheel for folder, wheel in wheels.items() if folder.name != "core"))
    return environment


@pytest.fixture(scope="module")
def core_alone(wheels: dict[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Install the core's wheel and nothing else."""
    environment = Environment.empty(tmp_path_factory.mktemp("alone") / "env")
    environment.install(wheels[ROOT / "core"])
    return environment


@each_distribution
def test_wheel_has_every_source_file(folder: Path, wheels: dict[Path, Path]) -> None:
    """No rule of the build, and no line of .gitignore, omits a file of src/ from the sdist or the wheel."""
    source = folder / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in source.glob("**/*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in COMPILED
    }
    with zipfile.ZipFile(wheels[folder]) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert packed == expected


@each_distribution
def test_wheel_is_typed(folder: Path, wheels: dict[Path, Path]) -> None:
    """Each package of a wheel declares to type checkers that it is typed (PEP 561)."""
    with zipfile.ZipFile(wheels[folder]) as archive:
        names = archive.namelist()
    packages = {Path(name).parent for name in names if name.endswith("/__init__.py")}
    outermost = {package for package in packages if not packages.intersection(package.parents)}
    assert outermost
    assert {package for package in outermost if (package / "py.typed").as_posix() not in names} == set()


@each_distribution
def test_licence_and_readme_travel_along(folder: Path, wheels: dict[Path, Path]) -> None:
    """The wheel and the sdist contain the repository's licence, and the README is the long description."""
    assert filecmp.cmp(folder / "LICENSE", ROOT / "LICENSE", shallow=False)
    fields = metadata(wheels[folder])
    assert fields["License-Expression"] == "Apache-2.0"
    assert fields["License-File"] == "LICENSE"
    assert fields.get_payload() == (folder / "README.md").read_text(encoding="utf-8")
    (sdist,) = wheels[folder].parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} <= inside


def test_core_requires_pluggy_only(wheels: dict[Path, Path]) -> None:
    """The core requires pluggy and nothing else; all other packages are in extras."""
    requirements = metadata(wheels[ROOT / "core"]).get_all("Requires-Dist", [])
    assert [requirement.partition(">")[0] for requirement in without_extras(requirements)] == ["pluggy"]


def test_core_is_small_and_has_stubs(wheels: dict[Path, Path]) -> None:
    """The core's wheel is smaller than 1 MB, including the stubs for editors."""
    wheel = wheels[ROOT / "core"]
    assert wheel.stat().st_size < 1_000_000
    with zipfile.ZipFile(wheel) as archive:
        assert [name for name in archive.namelist() if name.endswith(".pyi")]


def test_only_the_core_owns_the_package(wheels: dict[Path, Path]) -> None:
    """No two wheels contain the same file, so no installation overwrites another's."""
    owners: dict[str, str] = {}
    for wheel in wheels.values():
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                assert name not in owners, f"{name} is in {owners[name]} and in {wheel.name}"
                owners[name] = wheel.name


def test_extras_name_distributions_that_exist() -> None:
    """An extra that names a part of candelabra has that part's folder in this repository, and its extras there."""
    projects = [declared(folder) for folder in FOLDERS]
    ours = {project["name"] for project in projects}
    ours |= {f"{p['name']}[{extra}]" for p in projects for extra in p.get("optional-dependencies", {})}
    extras = declared(ROOT / "core")["optional-dependencies"]
    named = {requirement.partition(">")[0] for extra in extras.values() for requirement in extra}
    assert {name for name in named if name.startswith("candelabra-")} <= ours


@each_distribution
def test_makefile_knows_the_distribution(folder: Path) -> None:
    """`make` installs and builds every distribution of the repository."""
    (line,) = (line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("DISTRIBUTIONS :="))
    assert folder.relative_to(ROOT).as_posix() in line.split()


@each_distribution
def test_the_types_of_the_distribution_are_checked(folder: Path) -> None:
    """`make lint` checks the types of every distribution that `make dist` builds."""
    checked = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    source = (folder / "src").relative_to(ROOT).as_posix()
    assert source in checked["files"]
    assert source in checked["mypy_path"]


def trained_in(completed: subprocess.CompletedProcess[str], folder: Path) -> bool:
    """Return whether the model has learned, with modules of a folder."""
    assert completed.returncode == 0, completed.stderr
    files = [Path(line).resolve() for line in completed.stdout.splitlines()]
    return len(files) == 3 and all(path.is_relative_to(folder.resolve()) for path in files)


def test_unpacked_wheels_train(wheels: dict[Path, Path], tmp_path: Path) -> None:
    """Away from the source tree, with the files of the wheels, a linear model learns."""
    for wheel in wheels.values():
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path / "site")
    paths = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    program = [sys.executable, "-c", TRAINING]
    completed = subprocess.run(program, cwd=tmp_path, env=paths, capture_output=True, text=True, check=False)
    assert trained_in(completed, tmp_path)


@pytest.mark.thorough
def test_installed_wheels_train(installed: Environment) -> None:
    """With only the wheels and the packages that they require, a linear model learns."""
    assert trained_in(installed.run("python", "-c", TRAINING), installed.folder)


@pytest.mark.thorough
def test_the_folder_of_the_core_is_built_in_isolation(tmp_path: Path) -> None:
    """`pip install ./core` builds with what pyproject.toml requires and nothing else."""
    environment = Environment.empty(tmp_path / "env")
    environment.install(ROOT / "core")
    completed = environment.run("python", "-W", "error", "-c", "import candelabra; print(candelabra.__version__)")
    assert completed.returncode == 0, completed.stderr


@pytest.mark.thorough
def test_installed_requirements_agree(installed: Environment) -> None:
    """No installed package lacks a requirement or has a wrong version of it."""
    completed = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(installed.folder), "check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout


def test_core_alone_installs_pluggy_alone(core_alone: Environment) -> None:
    """The core installs pluggy and nothing else into an empty environment, and the core can be imported."""
    listing = "import importlib.metadata as m; print(*sorted(d.name for d in m.distributions()))"
    assert core_alone.run("python", "-c", listing).stdout.split() == ["candelabra", "pluggy"]
    completed = core_alone.run("python", "-W", "error", "-c", "import candelabra; print(candelabra.__version__)")
    assert completed.returncode == 0, completed.stderr


def test_core_alone_says_what_to_install(core_alone: Environment) -> None:
    """Without a device, the first tensor raises an error that says how to install one."""
    completed = core_alone.run("python", "-c", "import candelabra as cd; cd.tensor([1.0, 2.0])")
    assert completed.returncode == 1
    assert 'pip install "candelabra[cpu]"' in completed.stderr


def test_core_alone_has_the_command(core_alone: Environment) -> None:
    """The console script `candelabra` works without any device."""
    completed = core_alone.run("candelabra", "--help")
    assert completed.returncode == 0, completed.stderr
    assert "doctor" in completed.stdout
