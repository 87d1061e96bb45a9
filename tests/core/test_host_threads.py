"""The default number of threads: processors, quotas of control groups, and the user's variable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import candelabra._host_threads as host_threads
import pytest
from candelabra._host_threads import default_num_threads

V1 = """31 30 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro
32 31 0:29 {part} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
"""
V2 = "30 23 0:26 {part} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"


@pytest.fixture(autouse=True)
def _sixteen_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_threads, "_processors", lambda: 16)


def _threads(root: Path, files: dict[str, str], **environment: str) -> int:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return default_num_threads(str(root), environment)


def test_processors_are_the_default(tmp_path: Path) -> None:
    """Without files and variables, all processors are used."""
    assert _threads(tmp_path, {}) == 16


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("3", 3), (" 5 ", 5), ("4,2", 4), ("99", 16), ("0", 16), ("-2", 16), ("many", 16), ("", 16), ("²", 16)],
)
def test_the_variable(tmp_path: Path, setting: str, expected: int) -> None:
    """OMP_NUM_THREADS lowers the number; it does not raise it, and what is no positive number is ignored."""
    assert _threads(tmp_path, {}, OMP_NUM_THREADS=setting) == expected


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("50000 100000", 1),
        ("max 100000", 16),
        ("9900000 100000", 16),
        ("", 16),
        ("broken", 16),
        ("100000 0", 16),
    ],
)
def test_quotas_of_version_2(tmp_path: Path, quota: str, expected: int) -> None:
    """A quota is rounded up to whole processors; `max`, and what cannot be read, is no limit."""
    files = {
        "proc/self/cgroup": "0::/work/job\n",
        "proc/self/mountinfo": V2.format(part="/"),
        "sys/fs/cgroup/work/job/cpu.max": quota + "\n",
    }
    assert _threads(tmp_path, files) == expected


def test_the_least_of_a_hierarchy(tmp_path: Path) -> None:
    """A group is limited by those above it too."""
    files = {
        "proc/self/cgroup": "0::/a/b/c\n",
        "proc/self/mountinfo": V2.format(part="/"),
        "sys/fs/cgroup/a/b/c/cpu.max": "max 100000\n",
        "sys/fs/cgroup/a/b/cpu.max": "700000 100000\n",
        "sys/fs/cgroup/a/cpu.max": "300000 100000\n",
    }
    assert _threads(tmp_path, files) == 3
    assert _threads(tmp_path, files, OMP_NUM_THREADS="2") == 2


@pytest.mark.parametrize(("quota", "expected"), [("400000", 4), ("-1", 16)])
@pytest.mark.parametrize("part", ["/", "/docker/f00"])
def test_quotas_of_version_1(tmp_path: Path, quota: str, expected: int, part: str) -> None:
    """The controller `cpu` has two files. A container sees its own part of the hierarchy, or all of it."""
    folder = "sys/fs/cgroup/cpu,cpuacct" + ("/docker/f00" if part == "/" else "")
    files = {
        "proc/self/cgroup": "9:name=systemd:/\n4:cpu,cpuacct:/docker/f00\n3:cpuset:/other\n",
        "proc/self/mountinfo": V1.format(part=part),
        f"{folder}/cpu.cfs_quota_us": f"{quota}\n",
        f"{folder}/cpu.cfs_period_us": "100000\n",
    }
    assert _threads(tmp_path, files) == expected


def test_both_versions_at_once(tmp_path: Path) -> None:
    """Where both versions are mounted, the one with the processor's controller counts."""
    files = {
        "proc/self/cgroup": "1:cpu,cpuacct:/job\n0::/\n",
        "proc/self/mountinfo": V1.format(part="/")
        + V2.format(part="/").replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"),
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "500000\n",
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
    }
    assert _threads(tmp_path, files) == 5


def test_a_group_outside_of_what_is_mounted(tmp_path: Path) -> None:
    """Folders that do not exist are no limit."""
    files = {"proc/self/cgroup": "0::/../elsewhere\n", "proc/self/mountinfo": V2.format(part="/../x")}
    assert _threads(tmp_path, files) == 16


def test_the_number_of_a_process() -> None:
    """`get_num_threads` is the default, read once; setting a number overrides it."""
    program = (
        "import os, candelabra as cd; print(cd.get_num_threads(), cd.get_num_interop_threads())\n"
        "os.environ['OMP_NUM_THREADS'] = '7'; cd.set_num_threads(4); print(cd.get_num_threads())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "1 1\n4\n"
