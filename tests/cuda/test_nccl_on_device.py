"""The engine ``nccl`` with NCCL itself, on one GPU. Run by ``make cuda-check``; without a GPU or NCCL they do not run.

Each number of ranks is started once, in processes of their own, which run all checks of nccl_rank.py. One rank needs
nothing else. Two ranks share the GPU, which newer versions of NCCL allow if they are asked to; others refuse it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import pytest

from tests.cuda.nccl_rank import CHECKS

PROGRAM = Path(__file__).parent / "nccl_rank.py"
SECONDS = 120
"""The time of the ranks of one run. They compile some kernels, if the cache has none."""

pytestmark = [
    pytest.mark.skipif(not cd.cuda.is_available(), reason="there is no GPU"),
    pytest.mark.skipif(
        cd.cuda.is_available() and not dist.is_nccl_available(),
        reason='NCCL is not installed: pip install "candelabra[distributed-nccl]"',
    ),
]
Ranks = Callable[[int], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Ranks:
    """Return a function that runs the checks on a number of ranks, once, and returns the result of each rank."""

    @cache
    def run(size: int) -> list[dict[str, Any]]:
        folder = str(tmp_path_factory.mktemp("ranks"))
        environment = {**os.environ, "NCCL_MULTI_RANK_GPU_ENABLE": "1"} if size > 1 else None
        started = [
            subprocess.Popen(
                [sys.executable, "-X", "faulthandler", str(PROGRAM), folder, str(rank), str(size)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
            )
            for rank in range(size)
        ]  # fmt: skip
        found = []
        try:
            for rank, process in enumerate(started):
                output, messages = process.communicate(timeout=SECONDS)
                assert output, f"rank {rank} ended with status {process.returncode}:\n{messages[-4000:]}"
                found.append(json.loads(output.splitlines()[-1]))
        finally:
            for process in started:
                process.kill()
                process.communicate()
        return found

    return run


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("size", [1, 2])
def test_nccl(size: int, check: str, ranks: Ranks) -> None:
    """Each check of nccl_rank.py holds on each rank."""
    for rank, result in enumerate(ranks(size)):
        if size > 1 and "NCCL_ERROR_INVALID_USAGE" in result["connect"]:
            pytest.skip(f"NCCL {result['version']} does not let two ranks share a GPU")
        assert not result["connect"], f"rank {rank}: {result['connect']}"
        assert result["verdicts"][check] == "", f"rank {rank}: {result['verdicts'][check]}"


def test_one_rank_calls_nccl(ranks: Ranks) -> None:
    """Each kind of call has reached the library."""
    (result,) = ranks(1)
    assert {"allReduce", "reduce", "broadcast", "allGather", "reduceScatter", "send", "recv"} <= set(result["calls"])
