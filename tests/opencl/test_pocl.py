"""PoCL's cache is guarded, and whatever a driver's cache is: damage costs builds, and processes share it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from candelabra_opencl.pocl import FOLDER, RECORDS_FILE, WANTED, CacheGuard, guarded_cache, pocl_cache

PROGRAM = 'import candelabra as cd; x = cd.ones(8, device="opencl:0"); print((x + x).tolist())'
ANSWER = f"{[2.0] * 8}\n"


def library(sections: int = 2) -> bytes:
    """A library as long as its table of sections says."""
    head = b"\x7fELF\x02\x01".ljust(40, b"\0") + (64).to_bytes(8, "little")
    head += bytes(10) + (64).to_bytes(2, "little") + sections.to_bytes(2, "little") + bytes(2)
    return head + bytes(64 * sections)


def entry(folder: Path, name: str) -> Path:
    """An entry as PoCL makes it: the program, and a library for its kernel."""
    place = folder / "AB" / name
    (place / "kernel" / "1-1-1").mkdir(parents=True)
    (place / "program.bc").write_bytes(b"BC\xc0\xde" + bytes(8))
    (place / "kernel" / "1-1-1" / "kernel.so").write_bytes(library())
    (place / "last_accessed").write_text("now")
    return place


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a library is cut": lambda place: (place / "kernel/1-1-1/kernel.so").write_bytes(library()[:-1]),
    "a library is empty": lambda place: (place / "kernel/1-1-1/kernel.so").write_bytes(b""),
    "a library is something else": lambda place: (place / "kernel/1-1-1/kernel.so").write_bytes(bytes(999)),
    "the program is cut": lambda place: (place / "program.bc").write_bytes(b"BC\xc0\xde" + bytes(7)),
    "the program is something else": lambda place: (place / "program.bc").write_bytes(b"text"),
}


@pytest.mark.parametrize("noted", [True, False])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_entries_go(tmp_path: Path, damage: str, noted: bool) -> None:
    """Whether a process has noted how they were or not; the others stay."""
    damaged, whole = entry(tmp_path, "damaged"), entry(tmp_path, "whole")
    if noted:
        CacheGuard(tmp_path).record()
    DAMAGE[damage](damaged)
    CacheGuard(tmp_path).check()
    assert not damaged.exists()
    assert whole.exists()


def test_noted_files_are_as_they_were(tmp_path: Path) -> None:
    """A change that looks whole is found by the notes, and so is a file that is gone."""
    changed, reduced, whole = (entry(tmp_path, name) for name in ("changed", "reduced", "whole"))
    CacheGuard(tmp_path).record()
    os.utime(changed / "program.bc", ns=(1, 1))
    (reduced / "program.bc").unlink()
    CacheGuard(tmp_path).check()
    assert [place.exists() for place in (changed, reduced, whole)] == [False, False, True]


def test_notes_follow_the_entries(tmp_path: Path) -> None:
    """What is gone is forgotten, what is new is added; damaged notes are as good as none."""
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
    """Nothing is checked and nothing is noted where nothing can be kept."""
    (tmp_path / "file").write_text("not a folder")
    for place in (tmp_path / "file", tmp_path / "absent"):
        CacheGuard(place).check()
        CacheGuard(place).record()
        assert not (place / RECORDS_FILE).exists()


def test_the_environment_has_the_last_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PoCL's own variables are left alone; without them it is candelabra's, or none."""
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.delenv(WANTED, raising=False)
    monkeypatch.setenv("CANDELABRA_CACHE", str(tmp_path))
    with pocl_cache():
        assert os.environ[FOLDER] == str(tmp_path / "opencl" / "pocl")
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
    """Two processes begin with an empty folder at once; a third finds every file of theirs cut."""
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
