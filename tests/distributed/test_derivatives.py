"""Gradients through collectives: those of the sum of all ranks' losses. Ranks are threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra.distributed import ReduceOp, threads
from candelabra.distributed import nn as collectives

SIZE = 3


def numbers(seed: int, *shape: int) -> Any:
    """Return fixed numbers."""
    return cd.tensor(np.random.default_rng(seed).standard_normal(shape).tolist(), dtype=cd.float64)


Forward = Callable[[Any], Any]
Definition = Callable[[Sequence[Any]], list[Any]]

CASES: dict[str, tuple[Forward, Definition]] = {
    "all_reduce": (collectives.all_reduce, lambda xs: [sum(xs)] * SIZE),
    "average": (lambda x: collectives.all_reduce(x, ReduceOp.AVG), lambda xs: [sum(xs) / SIZE] * SIZE),
    "broadcast": (lambda x: collectives.broadcast(x, 1), lambda xs: [xs[1]] * SIZE),
    "reduce": (
        lambda x: collectives.reduce(x, 2, ReduceOp.AVG),
        lambda xs: [cd.zeros_like(xs[0])] * 2 + [sum(xs) / SIZE],
    ),
    "all_gather": (lambda x: cd.stack(collectives.all_gather(x)), lambda xs: [cd.stack(list(xs))] * SIZE),
    "gather": (
        lambda x: cd.stack(collectives.gather(x, 1)),
        lambda xs: [cd.stack(list(xs)) * float(rank == 1) for rank in range(SIZE)],
    ),
    "scatter": (lambda x: collectives.scatter(list(x.unbind(0)), 1), lambda xs: list(xs[1].unbind(0))),
    "reduce_scatter": (
        lambda x: collectives.reduce_scatter(x[0], list(x.unbind(0)), ReduceOp.AVG),
        lambda xs: [sum(x[rank] for x in xs) / SIZE for rank in range(SIZE)],
    ),
    "all_to_all": (
        lambda x: collectives.all_to_all_single(x, x, [1] * SIZE, [1] * SIZE),
        lambda xs: [cd.stack([x[rank] for x in xs]) for rank in range(SIZE)],
    ),
}
"""The call of one rank, and what all ranks get from the inputs of all."""


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_one_process(name: str) -> None:
    """A weighted sum of squares of all outputs has the same gradients, and second ones, in one process."""
    forward, definition = CASES[name]
    inputs = [numbers(rank, SIZE, 2).requires_grad_() for rank in range(SIZE)]
    outputs = definition(inputs)
    loss: Any = sum((rank + 1.0) * (out**2).sum() for rank, out in enumerate(outputs))
    expected = cd.autograd.grad(loss, inputs, create_graph=True, allow_unused=True)
    norm: Any = sum((g**2).sum() for g in expected if g is not None)
    second = cd.autograd.grad(norm, inputs, allow_unused=True)

    def program() -> Any:
        rank = dist.get_rank()
        x = numbers(rank, SIZE, 2).requires_grad_()
        out = forward(x)
        assert cd.allclose(out, outputs[rank].detach())
        (g,) = cd.autograd.grad((rank + 1.0) * (out**2).sum(), x, create_graph=True)
        (gg,) = cd.autograd.grad((g**2).sum(), x)
        return g.detach(), gg

    for (g, gg), e, ee in zip(threads.run(program, SIZE), expected, second, strict=True):
        assert cd.allclose(g, cd.zeros_like(g) if e is None else e)
        assert cd.allclose(gg, cd.zeros_like(gg) if ee is None else ee)


def test_only_sums_have_derivatives() -> None:
    """Other reductions are refused."""

    def program() -> None:
        for call in (
            lambda: collectives.all_reduce(cd.ones(1), ReduceOp.MAX),
            lambda: collectives.reduce(cd.ones(1), 0, ReduceOp.MAX),
            lambda: collectives.reduce_scatter(cd.ones(1), [cd.ones(1)], ReduceOp.MAX),
        ):
            with pytest.raises(
                ValueError, match=r"has derivatives for ReduceOp\.SUM and ReduceOp\.AVG, got ReduceOp\.MAX"
            ):
                call()

    threads.run(program, 1)
