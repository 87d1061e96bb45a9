"""Ranks with different numbers of batches: Join, with DistributedDataParallel and ZeroRedundancyOptimizer."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import nn, optim
from candelabra.distributed import threads
from candelabra.distributed.algorithms import Join, Joinable, JoinHook
from candelabra.distributed.optim import ZeroRedundancyOptimizer
from candelabra.nn.parallel import DistributedDataParallel

SIZE = 3
COUNTS = (0, 2, 4)
"""The numbers of batches of the ranks."""


def numbers(seed: int, *shape: int) -> Any:
    """Return fixed numbers."""
    return cd.tensor(np.random.default_rng(seed).standard_normal(shape).tolist(), dtype=cd.float64)


def network(norm: bool = False) -> Any:
    """Return a network with fixed weights."""
    layers = [nn.Linear(3, 4), nn.BatchNorm1d(4)] if norm else [nn.Linear(3, 4), nn.Tanh()]
    net = nn.Sequential(*layers, nn.Linear(4, 2)).double()
    with cd.no_grad():
        for number, p in enumerate(net.parameters()):
            p.copy_(numbers(number, *p.shape))
    return net


def batch(step: int, rank: int) -> Any:
    """Return the inputs of one rank."""
    return numbers(100 * step + rank + 1000, 5, 3)


def expected(by_active: bool) -> list[Any]:
    """Return the parameters of one process that adds up the gradients of the ranks that have a batch."""
    net = network()
    optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.5)
    for step in range(max(COUNTS)):
        optimizer.zero_grad()
        active = [rank for rank, count in enumerate(COUNTS) if step < count]
        loss: Any = sum((net(batch(step, rank)) ** 2).mean() for rank in active)
        (loss / (len(active) if by_active else SIZE)).backward()
        optimizer.step()
    return list(net.parameters())


@pytest.mark.parametrize(
    ("by_active", "zero"),
    [
        (False, False),
        (True, True),
        *(pytest.param(*pair, marks=pytest.mark.thorough) for pair in ((False, True), (True, False))),
    ],
)
def test_steps_are_those_of_the_ranks_with_batches(by_active: bool, zero: bool) -> None:
    """Every rank ends with the parameters of one process, also the rank that had no batch at all."""

    def program() -> list[Any]:
        rank = dist.get_rank()
        net = DistributedDataParallel(network(), bucket_cap_mb=1e-4)
        options = {"lr": 0.1, "momentum": 0.5}
        parameters = net.parameters()
        optimizer: Any = (
            ZeroRedundancyOptimizer(parameters, optim.SGD, **options) if zero else optim.SGD(parameters, **options)
        )
        joining = (
            Join([net, optimizer], divide_by_initial_world_size=not by_active)
            if zero
            else net.join(divide_by_initial_world_size=not by_active)
        )
        with joining:
            for step in range(COUNTS[rank]):
                optimizer.zero_grad()
                (net(batch(step, rank)) ** 2).mean().backward()
                optimizer.step()
        return [p.detach() for p in net.parameters()]

    for found in threads.run(program, SIZE):
        for p, q in zip(found, expected(by_active), strict=True):
            assert cd.allclose(p, q)


def test_buffers_and_local_steps() -> None:
    """Buffers end as those of the rank with the most batches; steps inside no_sync are mirrored without averages."""

    def program() -> list[Any]:
        rank = dist.get_rank()
        net = DistributedDataParallel(network(norm=True))
        optimizer = optim.SGD(net.parameters(), lr=0.1)
        with net.join():
            for step in range(COUNTS[rank]):
                if step % 2:
                    with net.no_sync():
                        (net(batch(step, rank)) ** 2).mean().backward()
                    continue
                (net(batch(step, rank)) ** 2).mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        return [t.detach() for t in net.module.state_dict().values()]

    first, *others = threads.run(program, SIZE)
    for other in others:
        assert all(cd.equal(a, b) for a, b in zip(first, other, strict=True))


def test_early_termination() -> None:
    """On request, every rank raises as soon as one has no more batches."""

    def program() -> None:
        rank = dist.get_rank()
        net = DistributedDataParallel(network())
        text = "Rank 0 exhausted all inputs" if rank == 0 else "Detected at least one rank that exhausted inputs"

        def train() -> None:
            with net.join(throw_on_early_termination=True):
                for step in range(COUNTS[rank]):
                    net(batch(step, rank)).sum().backward()

        with pytest.raises(RuntimeError, match=text):
            train()

    threads.run(program, SIZE)


def test_a_context_that_is_not_enabled() -> None:
    """Nothing is counted."""

    def program() -> None:
        net = DistributedDataParallel(network())
        with net.join(enable=False):
            net(batch(0, 0)).sum().backward()

    threads.run(program, 2)


class Counting(Joinable):
    """Counts the calls of its hooks."""

    def __init__(self, group: Any = None) -> None:
        self.calls: list[str] = []
        self.group = group

    def join_hook(self, **kwargs: Any) -> JoinHook:
        calls = self.calls

        class Hook(JoinHook):
            def main_hook(self) -> None:
                calls.append("main")
                super().main_hook()

            def post_hook(self, is_last_joiner: bool) -> None:
                calls.append(f"post {is_last_joiner}")
                super().post_hook(is_last_joiner)

        return Hook()

    @property
    def join_device(self) -> Any:
        return cd.device("cpu")

    @property
    def join_process_group(self) -> Any:
        return self.group


def test_joinables_of_your_own() -> None:
    """The main hook is called for each step that others still make, the post hook once."""

    def program() -> list[str]:
        counting = Counting()
        with Join([counting]):
            for _ in range(COUNTS[dist.get_rank()]):
                Join.notify_join_context(counting)
        assert Join.notify_join_context(counting) is None
        return counting.calls

    assert threads.run(program, SIZE) == [["main"] * 4 + ["post False"], ["main"] * 2 + ["post False"], ["post True"]]


def test_wrong_contexts() -> None:
    """The errors name the object, or the groups."""

    def program() -> None:
        with pytest.raises(ValueError, match="requires at least one joinable"):
            Join([])
        with pytest.raises(TypeError, match="int is not a Joinable: it has no join_hook, join_device, join_process"):
            Join([3])
        with pytest.raises(ValueError, match="Using join context manager with multiple process groups"):
            Join([Counting(), Counting(dist.new_group())])

    threads.run(program, 1)
