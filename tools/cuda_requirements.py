"""What ``make cuda-check`` needs of other projects, read from every ``pyproject.toml``, and what of it is missing.

The machine with the GPU brings Python, CuPy with CUDA's libraries, NumPy, SciPy and PyTorch, which are large; wheels of
the rest are collected elsewhere. Run by a Python with pip, of which the parser of requirements is.
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
"""The dependency groups of the repository's ``pyproject.toml`` that the check's parts stand on."""
MACHINE: Final = frozenset({"numpy", "scipy", "torch", "triton", "cupy"})
"""What the machine brings; and what begins as :data:`CUDA` says."""
CUDA: Final = ("cupy-", "cuda-", "nvidia-")


class Wanted(NamedTuple):
    """A requirement and who has it."""

    requirement: Requirement
    by: str

    def __str__(self) -> str:
        return f"{self.requirement} (for {self.by})"


def of_machine(name: str) -> bool:
    """Whether a distribution is the machine's own, and never collected."""
    plain = canonicalize_name(name)
    return plain in MACHINE or plain.startswith(CUDA)


def wanted(root: Path, folders: Sequence[str]) -> list[Wanted]:
    """What our distributions in these folders, their builds and the check's groups require of others."""
    projects: dict[str, dict[str, Any]] = {}
    for folder in folders:
        content = read(root / folder)
        projects[canonicalize_name(content["project"]["name"])] = content
    found: dict[str, Wanted] = {}
    for name, content in projects.items():
        for line in content["build-system"]["requires"]:
            found.setdefault(line, Wanted(Requirement(line), f"the build of {name}"))
        for each in _required(projects, content["project"].get("dependencies", ()), name, set()):
            found.setdefault(str(each.requirement), each)
    for line in [line for group in GROUPS for line in read(root)["dependency-groups"][group]]:
        found.setdefault(line, Wanted(Requirement(line), "the check"))
    return [each for each in found.values() if each.requirement.marker is None or each.requirement.marker.evaluate()]


def read(folder: Path) -> dict[str, Any]:
    """A folder's ``pyproject.toml``."""
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


def _required(
    projects: Mapping[str, dict[str, Any]], lines: Iterable[str], by: str, seen: set[str]
) -> Iterator[Wanted]:
    """Requirements of others, through our own extras."""
    for line in lines:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if name not in projects:
            yield Wanted(requirement, by)
            continue
        extras = projects[name]["project"].get("optional-dependencies", {})
        for extra in sorted(requirement.extras - seen):
            yield from _required(projects, extras[extra], f"{name}[{extra}]", seen | {extra})


# -- what there is ----------------------------------------------------------------------------------------------------
Find = Callable[[str], Iterator[Distribution]]
"""Every distribution of a name that could be used."""


def finder(wheels: Path) -> Find:
    """What is installed where this runs, then what the wheels of a folder bring to this Python."""
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


def missing(requirements: Iterable[Wanted], find: Find) -> list[tuple[Wanted, list[str]]]:
    """Every requirement that nothing meets, of these and of what meets them, each with the versions that there are."""
    waiting, lacking = list(requirements), []
    seen: set[str] = set()
    while waiting:
        wanted = waiting.pop(0)
        if str(wanted.requirement) in seen:
            continue
        seen.add(str(wanted.requirement))
        requirement = wanted.requirement
        versions = list(find(requirement.name))
        met = next((d for d in versions if requirement.specifier.contains(d.version, prereleases=True)), None)
        if met is None:
            lacking.append((wanted, [d.version for d in versions]))
        else:
            waiting += _of(met, requirement.extras)
    return lacking


def _of(found: Distribution, extras: Iterable[str]) -> Iterator[Wanted]:
    """What a distribution requires, here and with these extras."""
    for line in found.requires or ():
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            requirement.marker = None
            yield Wanted(requirement, found.metadata["Name"])
