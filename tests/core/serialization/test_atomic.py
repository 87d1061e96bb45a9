"""Atomic writes: a file has the old content or the complete new one."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from candelabra._serialization.atomic import replacing


def test_a_new_file_takes_the_name_and_nothing_else_is_left(tmp_path: Path) -> None:
    """The folder contains the new file and nothing else."""
    with replacing(tmp_path / "x") as f:
        f.write(b"new")
    assert (tmp_path / "x").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_error_leaves_everything_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    """An old file does not change, and a new one is not created."""

    def write(path: Path) -> None:
        with replacing(path) as f:
            f.write(b"new")
            raise error

    (tmp_path / "x").write_bytes(b"old")
    for name in ("x", "y"):
        with pytest.raises(error):
            write(tmp_path / name)
    assert (tmp_path / "x").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_failing_rename_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rename may fail too."""
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "x") as f:
        f.write(b"new")
    assert os.listdir(tmp_path) == []


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    """The error is that of open()."""
    with pytest.raises(IsADirectoryError), replacing(tmp_path):
        pass


def test_the_mode_stays(tmp_path: Path) -> None:
    """The new file has the permissions of the old one."""
    (tmp_path / "x").write_bytes(b"old")
    (tmp_path / "x").chmod(0o640)
    with replacing(tmp_path / "x") as f:
        f.write(b"new")
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_a_new_file_has_the_mode_of_any_other(tmp_path: Path) -> None:
    """The mode follows the process's umask, and is not the 0600 of temporary files."""
    (tmp_path / "plain").write_bytes(b"")
    with replacing(tmp_path / "x") as f:
        f.write(b"new")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """The link's target is replaced."""
    (tmp_path / "x").write_bytes(b"old")
    (tmp_path / "link").symlink_to("x")
    with replacing(tmp_path / "link") as f:
        f.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "x").read_bytes() == b"new"


def test_a_device_is_written_and_not_replaced() -> None:
    """The null device is still a device afterwards."""
    with replacing(os.devnull) as f:
        f.write(b"new")
    assert not stat.S_ISREG(os.stat(os.devnull).st_mode)


def test_a_pipe_is_written(tmp_path: Path) -> None:
    """The reader of the pipe gets the bytes."""
    os.mkfifo(tmp_path / "pipe")
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with replacing(tmp_path / "pipe") as f:
        f.write(b"new")
    reader.join()
    assert got == [b"new"]


def test_a_missing_folder_is_the_error_of_open(tmp_path: Path) -> None:
    """No folder is created."""
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "no" / "x"):
        pass
    assert os.listdir(tmp_path) == []
