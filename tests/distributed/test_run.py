"""``candelabra run``: the command line of mpiexec, and the variables that programs read."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import candelabra as cd
import pytest
from candelabra.distributed import _rank, run
from candelabra.library import command as candelabra


def launcher(folder: Path, version: str) -> str:
    """Write an mpiexec that prints a version."""
    path = folder / "mpiexec"
    path.write_text(f"#!/bin/sh\necho '{version}'\n")
    path.chmod(0o755)
    return str(path)


def test_the_command_line_of_mpich(tmp_path: Path) -> None:
    """Ranks, hosts, and the program with its arguments."""
    mpiexec = launcher(tmp_path, "HYDRA build details: Version: 5.0")
    line, added = run.command(["-n", "3", "--mpiexec", mpiexec, "train.py", "--lr", "0.1"])
    rank = [sys.executable, "-u", "-m", "candelabra.distributed._rank"]
    assert line == [mpiexec, "-n", "3", *rank, "train.py", "--lr", "0.1"]
    assert added["MASTER_ADDR"] == "127.0.0.1"
    assert int(added["MASTER_PORT"]) > 0
    line, added = run.command(
        ["--nproc-per-node=2", "--hosts=a,b", f"--mpiexec={mpiexec}", "-m", "package.train", "-v"]
    )
    assert line == [mpiexec, "-n", "4", "-hosts", "a,b", "-ppn", "2", *rank, "--module", "package.train", "-v"]
    assert added["MASTER_ADDR"] == "a"
    assert added["GROUP_WORLD_SIZE"] == "2"


def test_the_command_line_of_open_mpi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs two more options in containers."""
    mpiexec = launcher(tmp_path, "mpiexec (OpenRTE) 4.1.4")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    line, _ = run.command(["-n", "2", "--mpiexec", mpiexec, "--hosts", "a", "train.py"])
    assert line[:7] == [mpiexec, "-n", "2", "--oversubscribe", "--allow-run-as-root", "--host", "a:2"]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    line, _ = run.command(["-n", "2", "--mpiexec", mpiexec, "train.py"])
    assert "--allow-run-as-root" not in line


def test_arguments_of_torchrun_are_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of rendezvous have no effect, since mpiexec knows the ranks."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    mpiexec = launcher(tmp_path, "HYDRA")
    line, added = run.command([
        "--standalone", "--nnodes=1", "--nproc_per_node", "2", "--rdzv_backend", "c10d", "--rdzv-endpoint=localhost:0",
        "--rdzv-id", "7", "--max_restarts=3", "--master_port", "1234", "--mpiexec", mpiexec, "--no-python", "./a.out",
    ])  # fmt: skip
    assert line[2] == "2"
    assert line[-2:] == ["--no-python", "./a.out"]
    assert added["MASTER_PORT"] == "1234"
    assert added["TORCHELASTIC_RUN_ID"] == "7"
    assert added["OMP_NUM_THREADS"] == "1"
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert run.command(["-n", "2", "--mpiexec", mpiexec, "a.py"])[1]["OMP_NUM_THREADS"] == "3"


def test_numbers_of_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of processors, of the accelerator's devices, or a number."""
    mpiexec = launcher(tmp_path, "HYDRA")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    monkeypatch.setattr(cd.accelerator, "device_count", lambda: 4)
    for text, count in (("cpu", "6"), ("gpu", "4"), ("auto", "4"), ("3", "3")):
        assert run.command(["-n", text, "--mpiexec", mpiexec, "a.py"])[0][2] == count
    monkeypatch.setattr(cd.accelerator, "device_count", lambda: 0)
    assert run.command(["-n", "auto", "--mpiexec", mpiexec, "a.py"])[0][2] == "6"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-n", "0", "a.py"], "--nproc-per-node must be a positive number, auto, cpu or gpu, got '0'"),
        (["-n", "gpu", "a.py"], "--nproc-per-node gpu: there is no accelerator"),
        (["--nnodes", "x", "a.py"], "--nnodes must be a positive number, got 'x'"),
        (["--nnodes", "2", "a.py"], "--nnodes 2 needs --hosts with their names"),
        ([], "the following arguments are required: program"),
    ],
)
def test_wrong_arguments(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parser says what is wrong and exits with status 2."""
    monkeypatch.setattr(cd.accelerator, "device_count", lambda: 0)
    with pytest.raises(SystemExit, match="2"):
        run.command(arguments)
    assert text in capsys.readouterr().err


def test_without_mpiexec_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command ends with status 2."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r'there is no mpiexec: pip install "candelabra\[distributed\]"'):
        run.find_mpiexec()
    with pytest.raises(FileNotFoundError, match="candelabra run: there is no 'elsewhere/mpiexec'"):
        run.find_mpiexec("elsewhere/mpiexec")
    assert candelabra(["run", "a.py"]) == 2
    assert "there is no mpiexec" in capsys.readouterr().err


def test_the_command_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """``candelabra --help`` knows it, since the distribution is a plugin without a device."""
    with pytest.raises(SystemExit, match="0"):
        candelabra(["--help"])
    assert "run a program on several ranks" in capsys.readouterr().out


def test_the_status_of_mpiexec_is_that_of_the_command(tmp_path: Path) -> None:
    """An mpiexec that fails."""
    path = tmp_path / "mpiexec"
    path.write_text("#!/bin/sh\nexit 5\n")
    path.chmod(0o755)
    assert candelabra(["run", "--mpiexec", str(path), "a.py"]) == 5


def test_an_mpiexec_that_waits_for_a_lost_machine_is_ended(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """With its descendants, some seconds after a rank has ended all ranks."""
    path, pids = tmp_path / "mpiexec", tmp_path / "pids"
    path.write_text(
        f"#!/bin/sh\nsleep 600 &\necho $$ $! > {pids}\necho 'rank 3 ends all ranks because of KeyError: 1' >&2\nwait\n"
    )
    path.chmod(0o755)
    assert run.supervise([str(path)], {}, 0.1) == 1
    errors = capfd.readouterr().err
    assert "rank 3 ends all ranks because of KeyError: 1\n" in errors
    assert (
        "ended mpiexec, which has not ended within 0.1 s after a rank ended all ranks: a machine may be gone" in errors
    )
    for pid in pids.read_text().split():
        limit = time.monotonic() + 30
        while running(pid) and time.monotonic() < limit:
            time.sleep(0.01)
        assert not running(pid)


def running(pid: str) -> bool:
    """Return whether a process exists and has not ended."""
    state = Path(f"/proc/{pid}/stat")
    return state.exists() and state.read_text().rpartition(") ")[2][0] != "Z"


def test_a_signal_reaches_mpiexec(tmp_path: Path) -> None:
    """Which ends the ranks; the command returns its status."""
    path = tmp_path / "mpiexec"
    path.write_text("#!/bin/sh\ntrap 'exit 7' TERM\nwhile :; do kill -TERM $PPID; sleep 0.1; done\n")
    path.chmod(0o755)
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # of signals that arrive early or late
    try:
        assert run.supervise([str(path)], {}) == 7
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}, "2 4 0 2"),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}, "1 3 1 1"),
        ({"SLURM_PROCID": "5", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1"}, "5 8 1 1"),
        ({}, "0 1 0 1"),
    ],
)
def test_variables_of_ranks(environment: dict[str, str], rank: str) -> None:
    """From what MPICH, Open MPI or Slurm sets."""
    found = _rank.variables(environment)
    assert " ".join(found[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")) == rank
