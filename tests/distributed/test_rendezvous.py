"""Ranks that no launcher has started: they find each other by the variables that PyTorch's programs set."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from candelabra.distributed import EngineUnavailable, _mpi, _rendezvous, run

PROGRAM = str(Path(__file__).parent / "spawned.py")


def spawned(mode: str) -> subprocess.CompletedProcess[str]:
    """Run the program, at a port of its own: the number only names the job."""
    line = [sys.executable, PROGRAM, mode, f"{10_000 + uuid.uuid4().int % 50_000}"]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.skipif(run.is_open_mpi(run.find_mpiexec()), reason="Open MPI starts all ranks itself")
@pytest.mark.parametrize("mode", ["open", "raise", "kill"])
def test_ranks_of_spawn(mode: str) -> None:
    """They average gradients; a rank that raises or is killed ends the others, whose parent has its error."""
    done = spawned(mode)
    if mode == "open":
        assert done.returncode == 0, done.stderr
        assert done.stdout == "held\n" * 2
    else:
        assert done.returncode == 1
        text = "KeyError: 'no such batch'" if mode == "raise" else "process 1 terminated with exit code -9"
        assert text in done.stderr or "another rank has ended without MPI's shutdown" in done.stderr


def test_a_process_of_mpiexec_does_not_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known by the variables of process managers."""
    assert not _rendezvous.managed({"RANK": "0", "WORLD_SIZE": "2"})
    assert _rendezvous.managed({"PMI_RANK": "0"})
    assert _rendezvous.managed({"OMPI_COMM_WORLD_RANK": "0"})


def refused(text: str, **values: str | None) -> None:
    """Expect an error of a rank that searches for the others."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.delenv(name, raising=False) if value is None else patch.setenv(name, value)
        with pytest.raises(EngineUnavailable, match=text):
            _rendezvous.join(1, 2, 0.01)


def test_wrong_addresses() -> None:
    """The port is needed, and the machine must be this one."""
    refused("environment variable MASTER_PORT expected, but not set", MASTER_PORT=None)
    refused("MASTER_ADDR is far.example, but ranks that no launcher", MASTER_ADDR="far.example", MASTER_PORT="1")


def test_ranks_that_do_not_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ends after the timeout, and leaves no socket behind, not even one of a killed job."""
    monkeypatch.setattr(_rendezvous.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = tmp_path / f"candelabra-{os.getuid()}-7"
    folder.mkdir()
    (folder / "1").touch()
    text = re.escape("rank 1 of 2 has found no other ranks at MASTER_PORT 7 within 0.01 s")
    refused(text, MASTER_ADDR=socket.gethostname(), MASTER_PORT="7")
    assert not folder.exists()
    monkeypatch.setattr(_rendezvous.os, "getuid", lambda: 54_321)
    refused("belongs to another user: choose another MASTER_PORT", MASTER_ADDR="localhost", MASTER_PORT="7")


def test_mpiexec_must_be_that_of_mpich(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rank 0 starts it."""
    monkeypatch.setattr(run, "find_mpiexec", lambda: "/opt/mpiexec")
    monkeypatch.setattr(run, "is_open_mpi", lambda _: True)
    with pytest.raises(EngineUnavailable, match="/opt/mpiexec is Open MPI's, which starts all ranks itself: use"):
        _rendezvous._start_delegates(2, str(tmp_path), 1.0)

    def missing() -> str:
        raise FileNotFoundError("candelabra run: there is no mpiexec")

    monkeypatch.setattr(run, "find_mpiexec", missing)
    with pytest.raises(EngineUnavailable, match="there is no mpiexec"):
        _rendezvous._start_delegates(2, str(tmp_path), 1.0)


def test_a_rank_has_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several ranks without a launcher need theirs."""
    monkeypatch.setattr(_rendezvous, "managed", lambda _: False)
    monkeypatch.setattr(_mpi.MPI, "Is_initialized", lambda: False)
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match="init_process_group: rank must be from 0 to 1, got -1"):
        _mpi.MPIEngine().start(-1, 2, _mpi.timedelta(seconds=1))
