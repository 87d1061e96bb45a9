"""Gradients through collectives: those of the sum of all ranks' losses. Ranks are threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra.distributed import ReduceOp, conformance, threads
from candelabra.distributed import nn as collectives
from candelabra.distributed._process_group import group_named
from candelabra_distributed import collectives as operators

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


@pytest.mark.parametrize("name", CASES)
def test_forward_mode_and_vmap(name: str) -> None:
    """Collectives are linear: a tangent travels as its primal does, and a batch dim travels with the data."""
    forward, definition = CASES[name]
    inputs = [numbers(rank, SIZE, 2) for rank in range(SIZE)]
    tangents = [numbers(10 + rank, SIZE, 2) for rank in range(SIZE)]
    outputs, along = definition(inputs), definition(tangents)

    def program() -> None:
        rank = dist.get_rank()
        value, tangent = cd.func.jvp(forward, (inputs[rank],), (tangents[rank],))
        assert cd.allclose(value, outputs[rank])
        assert cd.allclose(tangent, along[rank])
        both = cd.func.vmap(forward)(cd.stack([inputs[rank], tangents[rank]]))
        assert cd.allclose(both, cd.stack([outputs[rank], along[rank]]))

    threads.run(program, SIZE)


def test_collectives_are_operators() -> None:
    """The graph has their names, the device ``meta`` knows their shapes, and dispatch explains them."""
    x = cd.ones(3, 4, requires_grad=True)
    gathered = operators.c10d_all_gather(x, 1, "self")
    assert gathered.grad_fn.name() == "C10dAllGatherBackward"
    assert operators.c10d_all_gather(cd.ones(3, 4, device="meta"), 5, "anywhere").shape == (5, 3, 4)
    assert operators.c10d_reduce_scatter(cd.ones(3, 4, device="meta"), "sum", "anywhere").shape == (4,)
    assert operators.c10d_all_to_all(cd.ones(3, 4, device="meta"), [1, 1], [2, 1], "anywhere").shape == (2, 4)
    assert cd.explain("c10d_all_reduce", cd.ones(2), "sum", "self").route == "composite"


def test_wrong_calls_of_operators() -> None:
    """The errors name the group, the reduction, or the number of rows and ranks."""
    one = cd.ones(1)
    for call, error, text in (
        (lambda: operators.c10d_broadcast(one, 0, "none"), ValueError, "no process group 'none': there are none"),
        (lambda: operators.c10d_all_reduce(one, "max", "self"), ValueError, "is 'sum' or 'avg', got 'max'"),
        (lambda: operators.c10d_all_gather(one, 2, "self"), RuntimeError, "has 1 ranks, but the argument ranks is 2"),
        (lambda: operators.c10d_scatter(cd.ones(3, 2), 0, "self"), RuntimeError, "each of the 1 ranks, got 3"),
        (lambda: operators.c10d_scatter(cd.ones(()), 0, "self"), RuntimeError, "in front, got a 0-d tensor"),
        (lambda: operators.c10d_all_to_all(cd.ones(()), None, None, "self"), RuntimeError, "divide among the ranks"),
    ):
        with pytest.raises(error, match=text):
            call()


def test_groups_have_names_of_their_own() -> None:
    """Two groups of one description differ in their names, by which operators find them."""

    def program() -> None:
        first, second = dist.new_group(group_desc="pair"), dist.new_group(group_desc="pair")
        assert first.group_name == "pair" != second.group_name
        assert operators.c10d_all_reduce(cd.ones(2), "sum", second.group_name).tolist() == [2.0, 2.0]
        with pytest.raises(ValueError, match="no process group 'other': there are 'world', 'pair'"):
            operators.c10d_all_reduce(cd.ones(2), "sum", "other")

    threads.run(program, 2)


def test_a_group_of_one_rank_sends_no_messages() -> None:
    """There is no other rank."""
    alone = group_named("self").communicator
    for call in (alone.send, alone.receive):
        with pytest.raises(ValueError, match="a group of one rank has no other rank for a message"):
            call(memoryview(bytearray(1)), 0, 0)
    assert conformance.failures(alone) == {}


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
