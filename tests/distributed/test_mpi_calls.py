"""The engine ``mpi``: calls that differ between ranks are errors; ranks of one machine reduce in a shared window."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.test_mpi import pytestmark, started

__all__ = ["pytestmark"]

PROGRAM = str(Path(__file__).parent / "mpi_calls.py")


@pytest.mark.parametrize("mode", ["mismatches", "windows"])
def test_calls_of_three_ranks(mode: str) -> None:
    """Sizes, dtypes, operations, roots and collectives that differ raise on every rank; windows give MPI's results."""
    done = started("-n", "3", PROGRAM, mode)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} held" for rank in range(3)]


def test_sizes_that_differ_end_a_program() -> None:
    """The error names a rank, the collective, the line, and the sizes."""
    done = started("-n", "2", PROGRAM, "program")
    assert done.returncode == 1
    assert "all_reduce(float32[" in done.stderr
    assert "called at mpi_calls.py:" in done.stderr
    assert "the ranks have buffers of different sizes, 12 to 16 bytes" in done.stderr


def test_a_window_that_is_not_released() -> None:
    """The program ends as one without a window does."""
    done = started("-n", "2", PROGRAM, "unclosed")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "2.0\n" * 2
