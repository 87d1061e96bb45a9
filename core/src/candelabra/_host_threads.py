"""The number of threads that this process may run at the same time: its processors, its quota, and the user's wish."""

from __future__ import annotations

import os

from candelabra._annotations import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CGROUPS = "proc/self/cgroup"
MOUNTS = "proc/self/mountinfo"


def default_num_threads(root: str = "/", environment: Mapping[str, str] = os.environ) -> int:
    """Return the least of the process's processors, its quota of processor time, and ``OMP_NUM_THREADS``.

    Containers limit processor time by a quota of their control group: with one of 1.5 processors, two threads make full
    use of it, and more only wait for each other. ``root`` is where the files of Linux are, for tests.
    """
    limits = [_processors(), _quota(root), _wish(environment.get("OMP_NUM_THREADS", ""))]
    return max(min(limit for limit in limits if limit is not None), 1)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _wish(setting: str) -> int | None:
    """Return the number of threads in OpenMP's variable, which may be a list with one number per level of nesting."""
    first = setting.split(",")[0].strip()
    return int(first) if first.isascii() and first.isdigit() and int(first) else None


def _quota(root: str) -> int | None:
    """Return the number of processors that the process's control groups allow, rounded up; None without a limit."""
    return min((limit for limit in _limits(root) if limit is not None), default=None)


def _limits(root: str) -> Iterator[int | None]:
    """Iterate over the limits of the process's control group and of those above it, in the versions 1 and 2."""
    groups = dict(_groups(root))
    for version, mounted_part, folder in _mounts(root):
        group = groups.get(version)
        if group is None:
            continue
        # A container often sees only its own part of the hierarchy, mounted at the top.
        path = group.removeprefix(mounted_part) if mounted_part != "/" else group
        parts = [part for part in path.split("/") if part and part != ".."]
        for depth in range(len(parts), -1, -1):
            yield _limit(version, os.path.join(root, folder.lstrip("/"), *parts[:depth]))


def _groups(root: str) -> Iterator[tuple[int, str]]:
    """Iterate over the versions of control groups, and the process's group in each. Only version 1 has controllers."""
    for line in _lines(os.path.join(root, CGROUPS)):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            yield 2, path
        elif _is_processor(controllers):
            yield 1, path


def _mounts(root: str) -> Iterator[tuple[int, str, str]]:
    """Iterate over the mounted hierarchies: the version, which part of the hierarchy is mounted, and where."""
    for line in _lines(os.path.join(root, MOUNTS)):
        before, _, after = line.partition(" - ")
        mount, system = before.split(), after.split()
        if system[0] == "cgroup2":
            yield 2, mount[3], mount[4]
        elif system[0] == "cgroup" and _is_processor(system[2]):
            yield 1, mount[3], mount[4]


def _is_processor(controllers: str) -> bool:
    return ",cpu," in f",{controllers},"


def _limit(version: int, folder: str) -> int | None:
    """Return the number of processors that the quota in a control group's folder allows, rounded up."""
    names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if version == 1 else ("cpu.max",)
    numbers = [number for name in names for line in _lines(os.path.join(folder, name)) for number in line.split()]
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers) or not int(numbers[1]):
        return None  # "max", -1, or no file: no limit
    return -(-int(numbers[0]) // int(numbers[1]))


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []
