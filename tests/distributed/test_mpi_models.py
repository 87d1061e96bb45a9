"""The digits CNN and the character GPT over MPI, and compiled functions with collectives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.test_mpi import pytestmark, started

__all__ = ["pytestmark"]

PROGRAM = str(Path(__file__).parent / "mpi_models.py")


@pytest.mark.parametrize("ranks", [2, *(pytest.param(n, marks=pytest.mark.thorough) for n in (1, 4))])
def test_models_train_as_in_one_process(ranks: int) -> None:
    """Losses and parameters by ``DistributedDataParallel``, ZeRO and ``fully_shard``, each rank in a process."""
    done = started("-n", str(ranks), PROGRAM)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} held" for rank in range(ranks)]
