"""Collectives in traced and compiled functions: each call is a node, which stays and keeps its place."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import candelabra as cd
import candelabra.distributed as dist
import numpy as np
import pytest
from candelabra import graph, nn
from candelabra.distributed import ReduceOp, threads
from candelabra.distributed import nn as collectives
from candelabra.graph import GraphBreak

SIZE = 2


def numbers(seed: int, *shape: int) -> Any:
    """Return fixed numbers."""
    return cd.tensor(np.random.default_rng(seed).standard_normal(shape).tolist(), dtype=cd.float64)


def mixed(x: Any) -> Any:
    """Return a number that depends on every collective with a derivative, and call one whose result is not used."""
    collectives.all_reduce(x)
    total = collectives.all_reduce(x * 2)
    again = collectives.all_reduce(x * 2, ReduceOp.AVG)
    rows = cd.stack(collectives.all_gather(total.tanh()))
    sent = collectives.broadcast(rows * again, 1)
    part = collectives.reduce_scatter(x, list(sent.unbind(0)))
    kept = collectives.scatter(list(cd.stack(collectives.gather(part * x, 1)).unbind(0)), 1)
    exchanged = collectives.all_to_all_single(kept, kept)
    return (exchanged * collectives.reduce(total, 0)).sum()


def in_place(x: Any) -> list[Any]:
    """Return tensors that collectives have written, and what is computed from them."""
    total = x * 1
    dist.all_reduce(total, ReduceOp.AVG)
    first = total + 1  # the mean
    dist.all_reduce(total)
    dist.reduce(total, 1)
    sent = x[:, ::2].T
    dist.broadcast(sent, 1)
    rows, whole = [x.new_empty(x.shape) for _ in range(SIZE)], x.new_empty((SIZE * x.shape[0], *x.shape[1:]))
    dist.all_gather(rows, sent.sum() * x)
    dist.all_gather_into_tensor(whole, rows[1] - x)
    part, parts = cd.zeros_like(x), x.new_zeros(1, x.shape[1])
    dist.reduce_scatter(part, [rows[0], whole[: x.shape[0]]])
    dist.reduce_scatter_tensor(parts, part + 1, ReduceOp.AVG)
    at_root = [cd.zeros_like(x) for _ in range(SIZE)] if dist.get_rank() == 1 else None
    dist.gather(part, at_root, 1)
    given, swapped = cd.zeros_like(x), cd.zeros_like(x)
    dist.scatter(given, at_root, 1)
    dist.all_to_all_single(swapped, given, [1, 1], [1, 1])
    dist.all_to_all_single(given, swapped * 2)
    return [total, first, sent, *rows, whole, part, parts, given, swapped]


def names(nodes: Any) -> list[str]:
    """Return the collectives among the nodes of a graph, in order."""
    return [node.name for node in nodes if node.name.startswith("c10d_")]


ALL = [
    "c10d_all_reduce", "c10d_all_reduce", "c10d_all_reduce", "c10d_all_gather", "c10d_broadcast", "c10d_reduce_scatter",
    "c10d_gather", "c10d_scatter", "c10d_all_to_all", "c10d_reduce",
]  # fmt: skip


def test_a_trace_shows_the_collectives() -> None:
    """One node for each call, with its arguments; a run of the graph makes the calls again."""

    def program() -> str:
        x = numbers(dist.get_rank(), 2, 3)
        found = graph.trace(mixed, x)
        assert names(found) == ALL
        (out,) = graph.runner(found)(numbers(dist.get_rank(), 2, 3)._payload)
        np.testing.assert_array_equal(out, mixed(x).numpy())
        return str(graph.trace(lambda x: collectives.all_gather(collectives.all_reduce(x))[0], x))

    text, _ = threads.run(program, SIZE)
    assert "v0: float64[2, 3] = c10d_all_reduce(a0, 'sum', 'world')" in text
    assert "v1: float64[2, 2, 3] = c10d_all_gather(v0, 2, 'world')" in text


def test_a_trace_shows_collectives_that_write() -> None:
    """The operator, and the copy of its result."""

    def program() -> str:
        def function(x: Any) -> Any:
            y = x + 1
            dist.all_reduce(y)
            return y * 2

        return str(graph.trace(function, cd.ones(3)))

    text = threads.run(program, SIZE)[0]
    assert "v1: float32[3] = c10d_all_reduce(v0, 'sum', 'world')" in text
    assert "copied_(v0, v" in text


def test_compiled_calls_equal_eager_ones() -> None:
    """Values and gradients, of the call that is traced and of later ones; the graphs have all calls in order."""

    def program() -> None:
        compiled = cd.compile(mixed, fullgraph=True)
        for step in range(4):
            x, y = (numbers(10 * step + dist.get_rank(), 2, 3).requires_grad_() for _ in range(2))
            loss, expected = compiled(x), mixed(y)
            (loss * 3).backward()
            (expected * 3).backward()
            assert cd.equal(loss.detach(), expected.detach())
            np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-13)
        [made] = compiled.programs
        assert names(made.graphs[0]) == ALL
        assert made.derivative is not None
        # the first all_reduce has no gradient; the others go backwards
        assert sorted(names(made.derivative.graph)) == sorted([
            "c10d_all_reduce", "c10d_all_reduce", "c10d_reduce_scatter", "c10d_reduce", "c10d_all_gather",
            "c10d_scatter", "c10d_gather", "c10d_all_to_all", "c10d_broadcast",
        ])  # fmt: skip

    threads.run(program, SIZE)


def test_second_derivatives_of_compiled_calls() -> None:
    """The backward pass repeats the call eagerly, on every rank."""

    def program() -> None:
        compiled = cd.compile(mixed, fullgraph=True)
        for _ in range(2):
            results = []
            for function in (compiled, mixed):
                x = numbers(dist.get_rank(), 2, 3).requires_grad_()
                (g,) = cd.autograd.grad(function(x), x, create_graph=True)
                results.append(cd.autograd.grad((g**2).sum(), x)[0])
            np.testing.assert_allclose(results[0].numpy(), results[1].numpy(), rtol=1e-12)

    threads.run(program, SIZE)


def test_equal_calls_are_all_made() -> None:
    """Also if nothing uses their results, and where all operands are constants."""
    made: list[str] = []

    def function(x: Any) -> Any:
        collectives.all_reduce(x)
        one, two = collectives.all_reduce(x), collectives.all_reduce(x)
        return one + two + collectives.all_reduce(cd.ones(2))

    def program() -> None:
        compiled = cd.compile(function, fullgraph=True)
        for _ in range(3):
            world: Any = dist.group.WORLD
            before = world.next_number()
            assert compiled(cd.ones(2)).tolist() == [6.0, 6.0]
            assert world.next_number() - before == 4 + 1
        assert len(names(compiled.programs[0].graphs[0])) == 4
        made.append("all")

    threads.run(program, SIZE)
    assert made == ["all"] * SIZE


def test_collectives_that_write_tensors() -> None:
    """Later nodes see what they have written; also into an argument, whose version advances."""

    def program() -> None:
        compiled = cd.compile(in_place, fullgraph=True)
        for step in range(3):
            x, y = (numbers(10 * step + dist.get_rank(), 2, 4) for _ in range(2))
            versions = x._version, y._version
            for found, expected in zip(compiled(x), in_place(y), strict=True):
                np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-14)
            assert cd.equal(x, y)  # rank 0 has received a view of it
            assert (x._version > versions[0]) == (y._version > versions[1]) or dist.get_rank() == 1
        assert len(compiled.programs) == 1

    threads.run(program, SIZE)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (3,)], ids=str)
@pytest.mark.parametrize("size", [1, SIZE])
def test_unusual_shapes(shape: tuple[int, ...], size: int) -> None:
    """Tensors without elements or dims, on one rank and on two; NaN travels."""

    def function(x: Any) -> list[Any]:
        y, rows, whole = x + 1, [cd.zeros_like(x) for _ in range(size)], x.new_zeros((size, *x.shape))
        dist.all_reduce(y, ReduceOp.AVG)
        dist.broadcast(y, 0)
        dist.all_gather(rows, y * x)
        dist.all_gather_into_tensor(whole, x)
        part, given = cd.zeros_like(x), cd.zeros_like(x)
        dist.reduce_scatter(part, rows)
        dist.reduce_scatter_tensor(y, whole)
        at_root = rows if dist.get_rank() == 0 else None
        dist.scatter(given, at_root, 0)
        dist.gather(part, at_root, 0)
        return [y, *rows, whole, part, given]

    def program() -> None:
        compiled = cd.compile(function, fullgraph=True)
        for _ in range(2):
            x = cd.full(shape, 2.0 + dist.get_rank())
            x.reshape(-1)[:1] = float("nan")
            for mine, expected in zip(compiled(x), function(x), strict=True):
                np.testing.assert_array_equal(mine.numpy(), expected.numpy())

    threads.run(program, size)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda x: dist.all_reduce(x, ReduceOp.MAX), "memory of a tensor is shared with NumPy"),
        (lambda x: dist.all_reduce(x, async_op=True).wait(), "memory of a tensor is shared with NumPy"),
        (lambda x: dist.all_reduce(x[:0], ReduceOp.MAX), "all_reduce(float32[0], ReduceOp.MAX) is a call of a process"),
        (lambda x: dist.barrier(), "barrier() is a call of a process group that no operator stands for"),
    ],
)
def test_other_calls_break_the_graph(call: Callable[[Any], Any], reason: str) -> None:
    """A trace names them, and a compiled function makes them at every call."""
    numbered = []

    def function(x: Any) -> Any:
        y = x + 1
        call(y)
        return y * 2

    def program() -> None:
        world: Any = dist.group.WORLD
        with pytest.raises(GraphBreak) as caught:
            graph.trace(function, cd.ones(2))
        assert reason in str(caught.value)
        compiled = cd.compile(function)
        for _ in range(4):
            before = world.next_number()
            compiled(cd.ones(2))
            numbered.append(world.next_number() - before)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        threads.run(program, SIZE)
    assert numbered == [2] * 4 * SIZE


def test_collectives_of_a_function_in_segments() -> None:
    """They are made in the order of the program, also those whose results are not used."""

    def function(x: Any) -> Any:
        collectives.all_reduce(x)
        y = collectives.all_reduce(x + 1)
        scale = y.sum().item()
        return collectives.broadcast(y * scale, 0)

    def program() -> None:
        world: Any = dist.group.WORLD
        compiled = cd.compile(function)
        for step in range(4):
            x = cd.full((2,), float(step))
            before = world.next_number()
            assert compiled(x).tolist() == [(2 * step + 2) * (4 * step + 4)] * 2
            assert world.next_number() - before == 3 + 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        threads.run(program, SIZE)


def test_ranks_that_compile_at_different_calls() -> None:
    """A rank that traces makes the calls of one that does not: its backward pass is traced without communication."""

    def function(x: Any) -> Any:
        return (collectives.all_reduce(x.sum()) * x).sum()

    def program() -> None:
        compiled = cd.compile(function, fullgraph=True)
        for step in range(6):
            rows = 2 + (step // 2 if dist.get_rank() else step // 3)  # the ranks meet new shapes at different steps
            x, y = (cd.arange(rows * 1.0).add(1).requires_grad_() for _ in range(2))
            compiled(x).backward()
            function(y).backward()
            assert cd.equal(x.grad, y.grad)

    threads.run(program, SIZE)


def test_a_program_serves_the_ranks_that_it_was_traced_for() -> None:
    """Another number of ranks, and another rank in the same process, is traced again."""

    def function(x: Any) -> Any:
        rows = cd.stack(collectives.all_gather(x))
        return rows.sum(0) * (dist.get_rank() + 1)

    compiled = cd.compile(function, fullgraph=True)

    def program() -> None:
        rank, size = dist.get_rank(), dist.get_world_size()
        for _ in range(2):
            assert compiled(cd.ones(1)).tolist() == [size * (rank + 1)]

    for size in (1, 2, 3):
        threads.run(program, size)


def test_results_of_which_only_some_lead_to_a_collective() -> None:
    """Whether a rank makes the call in its backward pass must not depend on whether it has compiled: a graph break."""

    def function(x: Any) -> Any:
        return collectives.all_reduce(x), x * 2

    def program() -> None:
        compiled = cd.compile(function, fullgraph=True)
        with pytest.raises(GraphBreak, match="backward pass of some results, and not of others, leads to a collective"):
            compiled(cd.ones(2, requires_grad=True))
        both = cd.compile(lambda x: (lambda y: (y * 2, y * 3))(collectives.all_reduce(x)), fullgraph=True)
        for _ in range(2):
            x = cd.ones(2, requires_grad=True)
            both(x)[1].sum().backward()
            assert x.grad.tolist() == [6.0, 6.0]

    threads.run(program, SIZE)


def test_an_error_of_a_collective_is_raised_once() -> None:
    """A compiled call that fails is not repeated eagerly: the ranks would no longer agree on the next call."""

    def function(x: Any) -> Any:
        return collectives.all_reduce(x)

    def program() -> Any:
        compiled = cd.compile(function, fullgraph=True)
        compiled(cd.ones(2))
        compiled(cd.ones(3))
        with pytest.raises(dist.DistBackendError, match=r"all_reduce\(float32\[[23]\], ReduceOp\.SUM\), number 3"):
            compiled(cd.ones(2 + dist.get_rank()))

    threads.run(program, SIZE)


def test_a_compiled_step_of_training() -> None:
    """Normalization over all ranks, the backward pass and the optimizer, as one compiled function."""

    def program() -> None:
        losses: list[list[float]] = []
        for compiles in (False, True):
            net = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))).double()
            with cd.no_grad():
                for i, p in enumerate(net.parameters()):
                    p.copy_(numbers(i, *p.shape))
            optimizer = cd.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

            def step(x: Any, net: Any = net, optimizer: Any = optimizer) -> Any:
                optimizer.zero_grad()
                loss = (net(x) ** 3).mean()
                loss.backward()
                for p in net.parameters():
                    dist.all_reduce(p.grad, ReduceOp.AVG)
                optimizer.step()
                return loss.detach()

            call = cd.compile(step, fullgraph=True) if compiles else step
            losses.append([call(numbers(10 * i + dist.get_rank(), 4, 3)).item() for i in range(4)])
            if compiles:
                assert call.programs  # type: ignore[attr-defined]
        np.testing.assert_allclose(losses[1], losses[0], rtol=1e-12)

    threads.run(program, SIZE)
