"""The models of two examples, the digits CNN and the character GPT, on 1, 2 and 4 ranks: they train as one process."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import nn, optim
from candelabra.distributed import threads
from candelabra.distributed.fsdp import fully_shard
from candelabra.distributed.optim import ZeroRedundancyOptimizer
from candelabra.nn.parallel import DistributedDataParallel

from examples import character_gpt, digits

STEPS, BATCH = 3, 8
OPTIONS: dict[str, Any] = {"lr": 0.05, "momentum": 0.9}


def digits_cnn() -> Any:
    """Return the CNN with batch norms over all ranks and without dropout, whose draws differ between ranks."""
    net = nn.SyncBatchNorm.convert_sync_batchnorm(digits.make_model())
    net[9].p = 0.0
    return net


def small_gpt() -> Any:
    """Return a GPT with tied weights."""
    return character_gpt.GPT(20, 12, width=16, heads=2, blocks=2)


def images(step: int) -> tuple[Any, Any]:
    """Return a whole batch of images and their digits."""
    rng = np.random.default_rng(step)
    x = rng.standard_normal((BATCH, 1, 8, 8))
    return cd.tensor(x.tolist(), dtype=cd.float64), cd.tensor(rng.integers(0, 10, BATCH).tolist())


def texts(step: int) -> tuple[Any, Any]:
    """Return a whole batch of characters and those that follow."""
    pieces = np.random.default_rng(step).integers(0, 20, (BATCH, 13))
    return cd.tensor(pieces[:, :-1].tolist()), cd.tensor(pieces[:, 1:].tolist())


def loss_of(net: Any, x: Any, y: Any) -> Any:
    """Return the mean cross-entropy of class scores along the last dim."""
    out = net(x)
    return nn.functional.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))


MODELS: dict[str, tuple[Callable[[], Any], Callable[[int], tuple[Any, Any]]]] = {
    "digits": (digits_cnn, images),
    "gpt": (small_gpt, texts),
}


def trained(strategy: str, model: Any, batch: Callable[[int], Any]) -> tuple[list[float], list[Any]]:
    """Train a copy as one rank, on this rank's rows of each batch. Return its losses and the whole parameters."""
    net: Any = copy.deepcopy(model)
    rank, rows = dist.get_rank(), BATCH // dist.get_world_size()
    if strategy == "fsdp":
        for block in net.blocks if hasattr(net, "blocks") else [net[4], net[10]]:
            fully_shard(block)
        fully_shard(net)
    else:
        net = DistributedDataParallel(net, bucket_cap_mb=0.01)
    zero = strategy == "zero"
    optimizer: Any = (
        ZeroRedundancyOptimizer(net.parameters(), optim.SGD, **OPTIONS)
        if zero
        else optim.SGD(net.parameters(), **OPTIONS)
    )
    losses = []
    for step in range(STEPS):
        x, y = (each[rank * rows : (rank + 1) * rows] for each in batch(step))
        optimizer.zero_grad()
        loss = loss_of(net, x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    whole = [p.full_tensor() if hasattr(p, "full_tensor") else p for p in net.parameters()]
    return losses, [p.detach().clone() for p in whole]


def alone(model: Any, batch: Callable[[int], Any], splits: int = 1) -> tuple[list[float], list[Any]]:
    """Train a copy in one process on whole batches, in splits whose gradients add up."""
    net = copy.deepcopy(model)
    optimizer = optim.SGD(net.parameters(), **OPTIONS)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for x, y in zip(*(each.chunk(splits) for each in batch(step)), strict=True):
            loss = loss_of(net, x, y)
            (loss / splits).backward()
            total += loss.item()
        optimizer.step()
        losses.append(total / splits)
    return losses, [p.detach().clone() for p in net.parameters()]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("strategy", ["ddp", "zero", "fsdp"])
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_losses_and_parameters_are_those_of_one_process(strategy: str, model: str, ranks: int) -> None:
    """The order of sums differs: three steps in float64 agree to 1e-11, and all ranks have the same parameters."""
    make, batch = MODELS[model]
    net = make().double()  # here, since ranks that are threads share one generator, and would draw in turns
    expected, parameters = alone(net, batch)
    found = threads.run(trained, ranks, strategy, net, batch)
    np.testing.assert_allclose(np.mean([losses for losses, _ in found], axis=0), expected, rtol=1e-11)
    for _, theirs in found:
        for mine, first, one in zip(theirs, found[0][1], parameters, strict=True):
            assert cd.equal(mine, first)
            np.testing.assert_allclose(mine.numpy(), one.numpy(), rtol=1e-11, atol=1e-12)
    if ranks == 1 and strategy != "fsdp":
        assert found[0][0] == expected


@pytest.mark.parametrize("strategy", ["ddp", "zero", "fsdp"])
def test_two_ranks_have_the_bits_of_one_process(strategy: str) -> None:
    """In float32: a sum of two terms has one order, and halves are exact."""
    net = small_gpt()
    expected, parameters = alone(net, texts, splits=2)
    found = threads.run(trained, 2, strategy, net, texts)
    assert np.mean([losses for losses, _ in found], axis=0).tolist() == expected
    for _, theirs in found:
        for mine, one in zip(theirs, parameters, strict=True):
            assert cd.equal(mine, one)
