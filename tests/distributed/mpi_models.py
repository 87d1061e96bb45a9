"""A program of several ranks that ``test_mpi_models.py`` starts by mpiexec: models of examples, compiled functions."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
from candelabra.distributed import nn as collectives

sys.path.insert(0, str(Path(__file__).parents[2]))  # the repository: a program has its own folder there

from tests.distributed.test_models import MODELS, alone, small_gpt, texts, trained

STRATEGIES = ("ddp", "zero", "fsdp")


def mean_over_ranks(losses: list[float]) -> Any:
    """Return the mean of the ranks' losses of each step."""
    found = cd.tensor(losses, dtype=cd.float64)
    dist.all_reduce(found, dist.ReduceOp.AVG)
    return found.numpy()


def models() -> None:
    """Train each model by each strategy: losses and parameters are those of one process, which trains here, too."""
    for make, batch in MODELS.values():
        cd.manual_seed(0)
        net = make().double()
        expected, parameters = alone(net, batch)
        for strategy in STRATEGIES:
            losses, found = trained(strategy, net, batch)
            np.testing.assert_allclose(mean_over_ranks(losses), expected, rtol=1e-11)
            for mine, one in zip(found, parameters, strict=True):
                first = mine.clone()
                dist.broadcast(first, 0)
                assert cd.equal(mine, first)
                np.testing.assert_allclose(mine.numpy(), one.numpy(), rtol=1e-11, atol=1e-12)


def bits() -> None:
    """Train the GPT in float32 on two ranks: a sum of two terms has one order, so all bits are those of one process."""
    cd.manual_seed(0)
    net = small_gpt()
    expected, parameters = alone(net, texts, splits=2)
    for strategy in STRATEGIES:
        losses, found = trained(strategy, net, texts)
        assert mean_over_ranks(losses).tolist() == expected
        assert all(cd.equal(mine, one) for mine, one in zip(found, parameters, strict=True))


def compiled() -> None:
    """Call a compiled function with collectives: values and gradients are those of eager calls."""

    def function(x: Any) -> Any:
        written = x.detach() * 2
        dist.all_reduce(written, dist.ReduceOp.AVG)
        total = collectives.all_reduce(x.tanh())
        collectives.all_reduce(x)
        rows = cd.stack(collectives.all_gather(total * written))
        return (collectives.reduce_scatter(x, list(rows.unbind(0))) ** 2).sum()

    made = cd.compile(function, fullgraph=True)
    for step in range(4):
        values = np.random.default_rng(10 * step + dist.get_rank()).standard_normal(5)
        x, y = (cd.tensor(values.tolist(), dtype=cd.float64, requires_grad=True) for _ in range(2))
        loss, expected = made(x), function(y)
        loss.backward()
        expected.backward()
        assert cd.equal(loss.detach(), expected.detach())
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-13)
    assert len(made.programs) == 1


def main() -> None:
    """Run everything that holds for this number of ranks."""
    dist.init_process_group("mpi", timeout=timedelta(seconds=60))
    models()
    if dist.get_world_size() == 2:
        bits()
    compiled()
    rank = dist.get_rank()
    dist.destroy_process_group()
    sys.stdout.write(f"rank {rank} held\n")


if __name__ == "__main__":
    main()
