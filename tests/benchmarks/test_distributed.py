"""The model of the benchmark of distributed training: its bytes are those that collectives send."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import pytest
from candelabra import nn, optim
from candelabra.distributed import threads
from candelabra.distributed.fsdp import fully_shard
from candelabra.distributed.optim import ZeroRedundancyOptimizer
from candelabra.nn.parallel import DistributedDataParallel

from benchmarks.distributed import STRATEGIES, Counted, Machine, held, least, modelled, prediction, step, volume


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_bytes_of_a_step(strategy: str) -> None:
    """Two ranks send as many bytes in a step as the model predicts."""

    def program() -> float:
        world: Any = dist.group.WORLD
        world.communicator = counted = Counted(world.communicator)
        net: Any = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
        if strategy == "fsdp":
            fully_shard(net)
        else:
            net = DistributedDataParallel(net)
        parameters = net.parameters()
        optimizer: Any = (
            ZeroRedundancyOptimizer(parameters, optim.SGD, lr=0.1)
            if strategy == "zero"
            else optim.SGD(parameters, lr=0.1)
        )
        for _ in range(3):
            counted.sent = 0.0
            optimizer.zero_grad()
            net(cd.ones(2, 8)).sum().backward()
            optimizer.step()
        return counted.sent

    assert threads.run(program, 2) == [volume(strategy, 4 * 2 * (64 + 8), 2)] * 2


def test_predictions() -> None:
    """Shards divide the memory; communication is not faster with more ranks; the table has a row for each number."""
    machine = Machine()
    for strategy in STRATEGIES:
        seconds, gigabytes = zip(*(prediction(strategy, ranks, machine) for ranks in (8, 64, 4096)), strict=True)
        assert list(seconds) == sorted(seconds)
        assert list(gigabytes) == sorted(gigabytes, reverse=True)
    assert prediction("fsdp", 64, machine)[1] < prediction("zero", 64, machine)[1] < prediction("ddp", 64, machine)[1]
    assert len(list(modelled(machine))) == 12


def test_the_model_of_a_small_machine() -> None:
    """Shards divide updates and memory, ranks share cores, and communication adds to the computation."""
    assert [step(strategy, 2, 3.0, 2.0, 0.5, 2) for strategy in STRATEGIES] == [5.5, 4.5, 4.5]
    assert [step(strategy, 4, 3.0, 2.0, 0.5, 2) for strategy in STRATEGIES] == [10.5, 7.5, 7.5]
    assert [held(strategy, 2, 10, 4, 4.0, 0.0) for strategy in STRATEGIES] == [160.0, 160.0, 100.0]
    assert least([{"wall": 2.0, "cpu": 1.0}, {"wall": 1.0, "cpu": 3.0}]) == {"wall": 1.0, "cpu": 1.0}
