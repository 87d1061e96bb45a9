"""Passes of graphs, traces, and what the printed graph says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import candelabra as cd
import pytest
from candelabra._graph.passes import folded, without_copies, without_dead_code, without_duplicates
from candelabra.graph import Graph, GraphBreak, decomposed, runner, simplified, trace


def names(graph: Graph) -> list[str]:
    """The names of the nodes, in order."""
    return [node.name for node in graph]


def payloads(graph: Graph, *arguments: cd.Tensor) -> list[Any]:
    """The payloads of a graph's inputs."""
    return [t._payload for t in (*arguments, *graph.captured.values())]


def unused(x: cd.Tensor) -> cd.Tensor:
    """Compute something that is not returned."""
    _ = x.sin()
    return x.exp()


def twice(x: cd.Tensor) -> cd.Tensor:
    """Compute the same twice."""
    return x.exp() * x.exp()


def write_between(x: cd.Tensor) -> cd.Tensor:
    """Compute the same before and after a write."""
    y = x * 1
    before = y.exp()
    y.add_(1)
    return before + y.exp()


def constant(x: cd.Tensor) -> cd.Tensor:
    """Use a matrix that depends on no argument."""
    return x + cd.eye(3).sum(0)


def draws(x: cd.Tensor) -> cd.Tensor:
    """Draw the same distribution twice."""
    return x + cd.rand(3) - cd.rand(3)


def copied(x: cd.Tensor) -> cd.Tensor:
    """Copy a value that nothing else uses."""
    return (x * 2).clone() + 1


CASES: list[tuple[Callable[[cd.Tensor], cd.Tensor], Callable[[Graph], Graph], list[str]]] = [
    (unused, without_dead_code, ["exp"]),
    (twice, without_duplicates, ["exp", "mul"]),
    (write_between, without_duplicates, ["mul", "exp", "add_", "exp", "add"]),
    (write_between, without_dead_code, ["mul", "exp", "add_", "exp", "add"]),
    (constant, folded, ["add"]),
    (copied, without_copies, ["mul", "add"]),
]


@pytest.mark.parametrize(("function", "run", "expected"), CASES)
def test_pass(function: Any, run: Callable[[Graph], Graph], expected: list[str], rng: Any) -> None:
    """A pass removes nodes, and the graph computes the same."""
    x = cd.tensor(rng.random(3))
    graph = trace(function, x)
    shorter = run(graph)
    assert names(shorter) == expected
    for each in (shorter, simplified(graph)):
        (out,) = runner(each)(*payloads(each, x))
        assert (out == function(x)._payload).all()


def test_draws_are_no_duplicates() -> None:
    """Two draws differ, also if their arguments look alike."""
    graph = simplified(trace(draws, cd.ones(3)))
    assert names(graph) == ["random_uniform", "add", "random_uniform", "sub"]
    assert [str(v.spec) for v in graph.inputs] == ["float32[3]", "None", "None", "None", "None"]


def test_trace_is_strict() -> None:
    """A trace refuses what a graph cannot repeat, with the user's line."""
    with pytest.raises(GraphBreak, match=r"the value of a tensor is read .* at test_passes\.py:\d+"):
        trace(lambda x: x * x.sum().item(), cd.ones(2))
    with pytest.raises(GraphBreak, match="a function runs outside of the graph"):
        trace(lambda x: cd.compiler.disable(lambda: None)(), cd.ones(2))


def test_printed_writes_and_numbers() -> None:
    """The text has inputs, captured tensors, numbers, in-place nodes and the user's lines."""
    w = cd.ones(2)
    text = str(trace(lambda x: (w.add_(x), cd.rand(2))[1], cd.ones(2)))
    assert text.splitlines()[0] == "graph(a0: float32[2], c0: float32[2], n0: number, n1: number):"
    assert "v0: float32[2] = add_(c0, a0)  # test_passes.py:" in text
    assert "v1: float32[2] = random_uniform((2,), n0, n1, candelabra.float32, 0)" in text


def test_large_values_are_released() -> None:
    """A large value lives no longer than its last use."""
    import linecache

    run = runner(trace(lambda x: (x * 2).exp().sum(), cd.ones(10_000)))
    text = "".join(linecache.getlines(run.__code__.co_filename))
    assert "v1 = None" in text
    assert run(cd.ones(10_000)._payload)[0] == pytest.approx(73890.56, rel=1e-5)


def test_declined_calls(owner_alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that declines a call of a graph is followed by dispatch, as in eager calls."""
    kernels = cd.library.open_device("cpu").kernels
    own = kernels["exp"]
    declines: list[bool] = []
    table = lambda x: NotImplemented if declines else own(x)  # noqa: E731
    monkeypatch.setitem(kernels, "exp", table)
    cd.library.OPERATORS["exp"].clear()
    try:
        run = runner(trace(lambda x: x.exp(), cd.ones(2)))
        declines.append(True)
        monkeypatch.setitem(kernels, "exp", own)
        cd.library.OPERATORS["exp"].clear()
        assert run(cd.zeros(2)._payload)[0].tolist() == [1, 1]
    finally:
        monkeypatch.undo()
        cd.library.OPERATORS["exp"].clear()


def composite(x: cd.Tensor) -> cd.Tensor:
    """Call composites that have kernels, one in the body of the other."""
    return cd.nn.functional.layer_norm(x.t(), (2,), x.new_ones(2) * 3, eps=1e-3).softmax(-1).logsumexp(1)


@pytest.mark.parametrize("start", [0, 2])
def test_decomposed(start: int, rng: Any) -> None:
    """The operators of bodies replace composite nodes, with the strides and offsets of their operands."""
    x = cd.tensor(rng.random(10))[start : start + 8].reshape(2, 4)
    graph = trace(composite, x)
    parts = decomposed(graph, lambda node: True)
    assert {"softmax", "normalize", "logsumexp"} <= set(names(graph))
    assert not {"softmax", "normalize", "logsumexp"} & set(names(parts))
    assert {"sub", "exp", "sum"} <= set(names(parts))
    (out,) = runner(parts)(*payloads(parts, x))
    assert cd.tensor(out).tolist() == pytest.approx(composite(x).tolist(), rel=1e-6)
    kept = decomposed(graph, lambda node: node.name != "softmax")
    assert "softmax" in names(kept)
    assert "normalize" not in names(kept)


def test_nodes_that_are_not_decomposed() -> None:
    """Primitives, views, writes and draws stay, and so does a node whose results are views of its operands."""
    graph = trace(lambda x: (x * 2).add_(cd.nn.functional.dropout(x.view(4), 0.5).reshape(2, 2)), cd.ones(2, 2))
    assert {"mul", "add_"} <= set(names(decomposed(graph, lambda node: True)))
    outer, inner = decomposed(graph, lambda node: node.is_view), graph
    assert names(outer) == names(inner)
