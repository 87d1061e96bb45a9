"""The engine ``mpi`` on two ranks, which ``candelabra run`` starts: collectives, conformance, and ranks that fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from candelabra.distributed import run

PROGRAM = str(Path(__file__).parent / "program.py")


def _has_mpiexec() -> bool:
    try:
        run.find_mpiexec()
    except FileNotFoundError:
        return False
    return True


pytestmark = pytest.mark.skipif(not _has_mpiexec(), reason="there is no mpiexec here")


def started(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command ``candelabra run`` and return what it has printed."""
    line = [sys.executable, "-m", "candelabra", "run", *arguments]
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith(("RANK", "WORLD_SIZE"))}
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, env=surroundings)


def test_two_ranks_agree() -> None:
    """Collectives, objects, messages and groups, in two processes."""
    done = started("-n", "2", PROGRAM, "good")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all held\n" * 2


def test_memory_of_devices_without_copies() -> None:
    """MPI takes it through DLPack, where a program says so; the conformance level of devices holds."""
    done = started("-n", "2", PROGRAM, "devices")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all held\n" * 2


def test_a_program_that_is_no_python_program() -> None:
    """It finds its rank in the environment, and its exit status is that of the command."""
    done = started("-n", "2", "--no-python", "sh", "-c", "echo rank $RANK of $WORLD_SIZE")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    assert started("-n", "1", "--no-python", "sh", "-c", "exit 3").returncode == 3


def test_the_engine_conforms() -> None:
    """All checks of the conformance level, as a module with an argument."""
    done = started("--nproc_per_node=2", "--standalone", "-m", "candelabra.distributed.conformance", "--engine", "mpi")
    assert done.returncode == 0, done.stderr
    assert "engine 'mpi' on 2 ranks: 11 checks, 0 failures" in done.stdout


@pytest.mark.parametrize(
    ("mode", "status", "text"),
    [
        ("raise", 1, "rank 1 ends all ranks because of KeyError: 'no such batch'"),
        ("exit", 7, "rank 1 ends all ranks by exit status 7"),
        ("kill", 9, ""),
        (
            "hang",
            1,
            "rank 0: all_reduce(float32[2, 3], ReduceOp.SUM), number 1 of group 'group 1 of ranks [0, 1]', called at ",
        ),
    ],
)
def test_a_rank_that_fails_ends_all(mode: str, status: int, text: str) -> None:
    """Within the timeout. The output names the rank, or the collective and the line of the rank that waits."""
    done = started("-n", "2", PROGRAM, mode)
    assert done.returncode == status
    assert text in done.stderr or (mode == "hang" and "rank 1: irecv(float32[1], src=0)" in done.stderr)
