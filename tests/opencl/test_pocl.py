"""The guard of PoCL's cache: damaged entries cost builds, and processes share the cache."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from candelabra_opencl.pocl import FOLDER, RECORDS_FILE, WANTED, CacheGuard, cache_name, guarded_cache, pocl_cache

PROGRAM = 'import candelabra as cd; x = cd.ones(8, device="opencl:0"); print((x + x).tolist())'
ANSWER = f"{[2.0] * 8}\n"


def library(sections: int = 2) -> bytes:
    """Return a library that is as long as its table of sections says."""
    head = b"\x7fELF\x02\x01".ljust(40, b"\0") + (64).to_bytes(8, "little")
    head += bytes(10) + (64).to_bytes(2, "little") + sections.to_bytes(2, "little") + bytes(2)
    return head + bytes(64 * sections)


def entry(folder: Path, name: str) -> Path:
    """Create an entry as PoCL does: the program, and a library for its kernel."""
    path = folder / "AB" / name
    (path / "kernel" / "1-1-1").mkdir(parents=True)
    (path / "program.bc").write_bytes(b"BC\xc0\xde" + bytes(8))
    (path / "kernel" / "1-1-1" / "kernel.so").write_bytes(library())
    (path / "last_accessed").write_text("now")
    return path


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a library is cut": lambda path: (path / "kernel/1-1-1/kernel.so").write_bytes(library()[:-1]),
    "a library is empty": lambda path: (path / "kernel/1-1-1/kernel.so").write_bytes(b""),
    "a library is something else": lambda path: (path / "kernel/1-1-1/kernel.so").write_bytes(bytes(999)),
    "the program is cut": lambda path: (path / "program.bc").write_bytes(b"BC\xc0\xde" + bytes(7)),
    "the program is something else": lambda path: (path / "program.bc").write_bytes(b"text"),
}


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_entries_are_deleted(tmp_path: Path, damage: str, recorded: bool) -> None:
    """The records may or may not have their previous state; the other entries stay."""
    damaged, whole = entry(tmp_path, "damaged"), entry(tmp_path, "whole")
    if recorded:
        CacheGuard(tmp_path).record()
    DAMAGE[damage](damaged)
    CacheGuard(tmp_path).check()
    assert not damaged.exists()
    assert whole.exists()


def test_recorded_files_must_be_unchanged(tmp_path: Path) -> None:
    """A change that keeps the format valid is detected by the records, and so is a missing file."""
    changed, reduced, whole = (entry(tmp_path, name) for name in ("changed", "reduced", "whole"))
    CacheGuard(tmp_path).record()
    os.utime(changed / "program.bc", ns=(1, 1))
    (reduced / "program.bc").unlink()
    CacheGuard(tmp_path).check()
    assert [path.exists() for path in (changed, reduced, whole)] == [False, False, True]


def test_records_follow_the_entries(tmp_path: Path) -> None:
    """Deleted entries are removed from the records, new ones added; damaged records are ignored."""
    first = entry(tmp_path, "first")
    CacheGuard(tmp_path).record()
    (tmp_path / RECORDS_FILE).write_text("{")
    CacheGuard(tmp_path).check()
    assert first.exists()
    entry(tmp_path, "second")
    CacheGuard(tmp_path).record()
    assert '"AB/first"' in (tmp_path / RECORDS_FILE).read_text()
    assert '"AB/second"' in (tmp_path / RECORDS_FILE).read_text()


def test_a_folder_that_is_none_is_no_error(tmp_path: Path) -> None:
    """Nothing is checked and recorded if the folder cannot be used."""
    (tmp_path / "file").write_text("not a folder")
    for path in (tmp_path / "file", tmp_path / "absent"):
        CacheGuard(path).check()
        CacheGuard(path).record()
        assert not (path / RECORDS_FILE).exists()


def test_the_environment_takes_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PoCL's own variables take precedence; without them the folder is candelabra's, or there is no cache."""
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.delenv(WANTED, raising=False)
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path))
    with pocl_cache():
        assert os.environ[FOLDER] == str(tmp_path / "opencl" / cache_name())
    assert FOLDER not in os.environ
    monkeypatch.setenv("CANDELABRA_CACHE", "0")
    with pocl_cache():
        assert os.environ[WANTED] == "0"
    assert WANTED not in os.environ
    monkeypatch.setenv(FOLDER, "mine")
    with pocl_cache():
        assert os.environ[FOLDER] == "mine"
        assert WANTED not in os.environ
    assert guarded_cache(tmp_path) is guarded_cache(tmp_path)


def test_processes_share_a_cache_and_damage_costs_builds_only(tmp_path: Path) -> None:
    """Two processes start with an empty folder at the same time; a third one finds all their files truncated."""
    environment = {**os.environ, "CANDELABRA_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == [ANSWER, ANSWER]
    assert [process.returncode for process in both] == [0, 0]
    kept = [path for path in tmp_path.glob("**/*") if path.is_file()]
    for path in kept:
        path.write_bytes(path.read_bytes()[:-5])
    third = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert kept
    assert third.stdout == ANSWER


def test_an_entry_that_another_process_may_write_is_kept(tmp_path: Path) -> None:
    """An incomplete entry is deleted if no other process uses the folder, or if it is old."""
    assert CacheGuard(tmp_path).check()  # it holds the lock of the folder, as a running process does
    partial = entry(tmp_path, "partial")
    DAMAGE["a library is cut"](partial)
    later = CacheGuard(tmp_path)
    assert not later.check()
    assert partial.exists()
    later.record()
    assert not (tmp_path / RECORDS_FILE).exists()
    for path in (partial, partial / "program.bc", partial / "kernel/1-1-1/kernel.so"):
        os.utime(path, (1, 1))
    assert CacheGuard(tmp_path).check()
    assert not partial.exists()


def test_a_process_leaves_what_another_one_compiles(tmp_path: Path) -> None:
    """It takes a folder of its own for that time, so that neither fails."""
    folder = tmp_path / "opencl" / cache_name()
    folder.mkdir(parents=True)
    assert CacheGuard(folder).check()
    partial = entry(folder, "partial")
    DAMAGE["a library is empty"](partial)
    environment = {**os.environ, "CANDELABRA_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout == ANSWER
    assert os.listdir(folder / "AB") == ["partial"]


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The device works without a cache, and a warning says why later runs compile again."""
    (tmp_path / "file").write_text("not a folder")
    environment = {**os.environ, "CANDELABRA_CACHE": str(tmp_path / "file" / "cache")}
    command = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert found.stdout == ANSWER
    assert found.stderr.count("compiled kernels are not kept for later runs") == 1
    assert f"Not a directory: '{tmp_path / 'file' / 'cache' / 'opencl'}'" in found.stderr
    assert "CANDELABRA_CACHE" in found.stderr


def test_a_folder_of_another_user_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder may exist and not be writable."""
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.warns(RuntimeWarning, match="no permission to write to .*pocl"):
        guard = guarded_cache(tmp_path / "pocl")
    assert guard.folder != tmp_path / "pocl"


UNREAD = """
import candelabra as cd
from candelabra_opencl import pocl
pocl.CacheGuard.check = lambda self: False  # another process has left an entry: a temporary folder serves
x = cd.ones(1000, device="opencl")
y = (x.sin() + x.cos() * 3).exp()
"""


def test_a_process_may_end_with_work_that_nothing_reads(tmp_path: Path) -> None:
    """PoCL compiles kernels when they run, so its temporary folder is removed after the work is complete."""
    environment = {**os.environ, "CANDELABRA_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", UNREAD], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
