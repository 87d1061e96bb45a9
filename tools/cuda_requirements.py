"""The requirements of ``make cuda-check``, read from every ``pyproject.toml``, and those of them that are missing.

The machine with the GPU has Python, CuPy with CUDA's libraries, NumPy, SciPy and PyTorch, which are large; wheels of
the rest are collected elsewhere. It needs a Python with pip, because it uses pip's parser of requirements.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, PathDistribution, distribution
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import Path as ZipPath

from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.tags import sys_tags
from pip._vendor.packaging.utils import canonicalize_name, parse_wheel_filename

GROUPS: Final = ("running", "demo")
"""The dependency groups of the repository's ``pyproject.toml`` that the parts of the check need."""
MACHINE: Final = frozenset({"numpy", "scipy", "torch", "triton", "cupy"})
"""The distributions of the machine, in addition to those whose names begin as :data:`CUDA`."""
CUDA: Final = ("cupy-", "cuda-", "nvidia-")


class Required(NamedTuple):
    """A requirement and the distribution that has it."""

    requirement: Requirement
    by: str

    def __str__(self) -> str:
        return f"{self.requirement} (for {self.by})"


def of_machine(name: str) -> bool:
    """Return whether a distribution belongs to the machine and is never collected."""
    plain = canonicalize_name(name)
    return plain in MACHINE or plain.startswith(CUDA)


def requirements_of(root: Path, folders: Sequence[str]) -> list[Required]:
    """Return the requirements of the distributions in these folders, of their builds and of the groups of the check."""
    projects: dict[str, dict[str, Any]] = {}
    for folder in folders:
        content = read(root / folder)
        projects[canonicalize_name(content["project"]["name"])] = content
    result: dict[str, Required] = {}
    for name, content in projects.items():
        for line in content["build-system"]["requires"]:
            result.setdefault(line, Required(Requirement(line), f"the build of {name}"))
        for each in _required(projects, content["project"].get("dependencies", ()), name, set()):
            result.setdefault(str(each.requirement), each)
    for line in [line for group in GROUPS for line in read(root)["dependency-groups"][group]]:
        result.setdefault(line, Required(Requirement(line), "the check"))
    return [each for each in result.values() if each.requirement.marker is None or each.requirement.marker.evaluate()]


def read(folder: Path) -> dict[str, Any]:
    """Return a folder's ``pyproject.toml``."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def _required(
    projects: Mapping[str, dict[str, Any]], lines: Iterable[str], by: str, seen: set[str]
) -> Iterator[Required]:
    """Return the requirements on other projects, including those of our extras."""
    for line in lines:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name not in projects:
            yield Required(requirement, by)
            continue
        extras = projects[name]["project"].get("optional-dependencies", {})
        for extra in sorted(requirement.extras - seen):
            yield from _required(projects, extras[extra], f"{name}[{extra}]", seen | {extra})


# -- available distributions -------------------------------------------------------------------------------------------
Find = Callable[[str], Iterator[Distribution]]
"""A function that yields every usable distribution of a name."""


def finder(wheels: Path) -> Find:
    """Return a function that yields installed distributions, then those of the wheels in a folder that suit this
    Python.
    """
    files: dict[str, list[Path]] = {}
    supported = set(sys_tags())
    for path in sorted(wheels.glob("*.whl"), reverse=True):
        name, _, _, tags = parse_wheel_filename(path.name)
        if supported & tags:
            files.setdefault(name, []).append(path)

    def find(name: str) -> Iterator[Distribution]:
        try:
            yield distribution(name)
        except PackageNotFoundError:
            pass
        for path in files.get(canonicalize_name(name), ()):
            (folder,) = (each for each in ZipPath(path).iterdir() if each.name.endswith(".dist-info"))
            yield PathDistribution(folder)

    return find


def missing(requirements: Iterable[Required], find: Find) -> list[tuple[Required, list[str]]]:
    """Return every requirement that nothing meets, of these and of what meets them, each with the versions that there
    are.
    """
    waiting, lacking = list(requirements), []
    seen: set[str] = set()
    while waiting:
        required = waiting.pop(0)
        if str(required.requirement) in seen:
            continue
        seen.add(str(required.requirement))
        requirement = required.requirement
        versions = list(find(requirement.name))
        met = next((d for d in versions if requirement.specifier.contains(d.version, prereleases=True)), None)
        if met is None:
            lacking.append((required, [d.version for d in versions]))
        else:
            waiting += _of(met, requirement.extras)
    return lacking


def _of(distribution: Distribution, extras: Iterable[str]) -> Iterator[Required]:
    """Yield the requirements of a distribution on this platform with these extras."""
    for line in distribution.requires or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            requirement.marker = None
            yield Required(requirement, distribution.metadata["Name"])
