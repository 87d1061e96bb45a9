"""Atomic writes: a file has the old content or the complete new one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import candelabra as cd
import pytest
from candelabra._serialization import atomic
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


def killed(path: Path, after: int) -> None:
    """Kill a process that writes to ``path``, after a number of bytes have reached the temporary file."""
    program = (
        "import sys\n"
        "from candelabra._serialization.atomic import replacing\n"
        f"with replacing(sys.argv[1]) as f:\n    f.write(bytes({after}))\n    f.flush()\n"
        "    print('written', flush=True)\n    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.kill()


def test_the_next_save_removes_what_a_killed_process_left(tmp_path: Path) -> None:
    """The old file is complete after a kill; the temporary file goes with the next save to the same path."""
    path = tmp_path / "x.safetensors"
    cd.save([cd.ones(3)], path)
    for after in (0, 100_000):
        killed(path, after)
        assert len(os.listdir(tmp_path)) == 2
        assert cd.load(path)[0].tolist() == [1, 1, 1]
        cd.save([cd.zeros(2)], tmp_path / "y.safetensors")  # of another path, which leaves it alone
        assert len(os.listdir(tmp_path)) == 3
        (tmp_path / "y.safetensors").unlink()
        cd.save([cd.ones(3)], path)
        assert os.listdir(tmp_path) == ["x.safetensors"]


def test_saves_to_one_path_leave_each_other_alone(tmp_path: Path) -> None:
    """A file that another thread or process still writes is not abandoned; the last to finish wins."""
    with replacing(tmp_path / "x") as first:
        first.write(b"first")
        with replacing(tmp_path / "x") as second:
            second.write(b"second")
        assert (tmp_path / "x").read_bytes() == b"second"
    assert (tmp_path / "x").read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["x"]


def test_a_file_that_was_taken_for_abandoned_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may remove a temporary file between its creation and its lock."""
    lock = atomic._lock
    removed: list[str] = []

    def late(descriptor: int, *, wait: bool) -> bool:
        if not removed:
            removed.extend(os.listdir(tmp_path))
            (tmp_path / removed[0]).unlink()
        return lock(descriptor, wait=wait)

    monkeypatch.setattr(atomic, "_lock", late)
    with replacing(tmp_path / "x") as f:
        f.write(b"new")
    assert removed
    assert os.listdir(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == b"new"


def test_a_system_without_locks_keeps_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without locks nothing says that a file is abandoned."""
    (tmp_path / ".x.0123456789ab.tmp").write_bytes(b"?")
    (tmp_path / ".x.other.tmp").write_bytes(b"?")
    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", lambda *_: os.open(tmp_path / "missing", 0))
        with replacing(tmp_path / "x") as f:
            f.write(b"new")
    assert len(os.listdir(tmp_path)) == 3
    with replacing(tmp_path / "x") as f:
        f.write(b"new")
    assert sorted(os.listdir(tmp_path)) == [".x.other.tmp", "x"]


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
