"""Captured graphs replay what later calls need, on the double of CuPy (``replayed.py``)."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra import library, nn
from candelabra.errors import OutOfMemoryError
from candelabra.graph import Graph, default_kernel
from candelabra.library import plugins
from candelabra_cuda.backend import CudaBackend
from candelabra_cuda.graphs import MOST_CHANGES, ReplayedGraph
from candelabra_cuda.hip import RocmBackend
from candelabra_cuda.sections import sections_of

from tests.cuda.replayed import Device, Replayed, over


@pytest.fixture
def device(engine: Any, doubles: ModuleType) -> Device:
    """Return the device of these tests."""
    return Device(engine, doubles)


def chain(x: Any, w: Any) -> Any:
    """Six launches with a view between them."""
    h = (x @ w).tanh()
    h = (h.t() @ x).exp()
    return (h + 1) * h, h.sum()


def values(rng: np.random.Generator, graph: Graph) -> list[Any]:
    """Return random values for the inputs of a graph."""
    return [rng.standard_normal(v.spec.shape).astype(v.spec.dtype.name) if v.spec else 3 for v in graph.inputs]


@pytest.fixture
def chained(device: Device) -> Replayed:
    """Return the graph of ``chain`` for a matrix and a parameter."""
    return Replayed(device, cd.graph.trace(chain, cd.ones(4, 4), cd.ones(4, 4)))


def test_later_calls_replay_what_one_call_captured(chained: Replayed, rng: np.random.Generator) -> None:
    """From the fourth call on, Python runs no kernel. Results are right, also those that were kept."""
    device, kept = chained.device, []
    weight = chained.placed(values(rng, chained.graph))[1]
    counts = []
    for _ in range(8):
        given = values(rng, chained.graph)
        given[1] = over(weight).copy()
        x = chained.placed(given)[0]
        before = device.calls
        results = chained.check(given, [x, weight])
        counts.append(device.calls - before)
        kept.append((results, [over(r).copy() for r in results]))
    assert counts == [7, 7, 7, 0, 0, 0, 0, 0]
    assert not chained.function.single
    for results, then in kept:
        for result, value in zip(results, then, strict=True):
            np.testing.assert_array_equal(over(result), value)


def test_inputs_that_move_are_copied_and_others_read_in_place(chained: Replayed, rng: np.random.Generator) -> None:
    """The parameter stays where it is; when it moves, too, the launches are captured again."""
    given = values(rng, chained.graph)
    inputs = chained.placed(given)
    kept = [inputs]
    for _ in range(4):
        chained.check(given, kept[-1])
        kept.append([chained.placed(given)[0], inputs[1]])
    assert list(chained.function._copied) == [0]
    captures = dict(chained.function.captures)
    assert captures
    moved = chained.placed(values(rng, chained.graph))
    for _ in range(3):
        chained.check([over(a).copy() for a in moved], moved)
    assert list(chained.function._copied) == [0, 1]
    assert chained.function.captures != captures


def test_outputs_may_show_inputs(device: Device, rng: np.random.Generator) -> None:
    """A view of an input that is copied shows the caller's memory; results that share memory share it afterwards."""

    def shows(x: Any) -> Any:
        y = ((x + 1).exp() * 2).tanh() - 3
        return x.t(), y, y.t()

    replayed = Replayed(device, cd.graph.trace(shows, cd.ones(3, 2)))
    for _ in range(6):
        given = values(rng, replayed.graph)
        inputs = replayed.placed(given)
        view, y, transposed = replayed.check(given, inputs)
        assert view.buffer is inputs[0].buffer
        assert y.buffer is transposed.buffer
    assert replayed.function.captures


def training(optimizer: str, dropout: float = 0.0) -> Graph:
    """Return the graph of a training step, whose numbers are inputs."""
    with cd.random.fork_rng():
        cd.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(dropout), nn.Linear(8, 3))
        chosen = getattr(cd.optim, optimizer)(model.parameters(), lr=0.1)

        def step(x: Any, target: Any) -> Any:
            chosen.zero_grad()
            loss = ((model(x) - target) ** 2).mean()
            loss.backward()
            chosen.step()
            return loss

        compiled = cd.compile(step, fullgraph=True)
        for _ in range(3):  # the first call creates the state
            compiled(cd.ones(5, 4), cd.ones(5, 3))
    (graph,) = compiled.programs[0].graphs
    return graph


@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_training_steps_are_replayed(device: Device, rng: np.random.Generator, optimizer: str) -> None:
    """Parameters are written where they are. A node with numbers of the call runs by itself, with those numbers."""
    graph = training(optimizer)
    replayed = Replayed(device, graph)
    given = values(rng, graph)
    inputs = replayed.placed(given)
    numbers = [i for i, v in enumerate(graph.inputs) if v.is_number]
    assert numbers
    for call in range(7):
        for i in numbers:
            given[i] = inputs[i] = 0.125 * (call + 1)
        for i, value in enumerate(graph.inputs):
            if not value.is_number:
                given[i] = np.abs(over(inputs[i]))
                over(inputs[i])[...] = given[i]
        before = device.calls
        replayed.check(given, inputs)
    assert [section.captured for section in replayed.function.sections] == [True, False]
    assert device.calls - before == sum(any(v.is_number for v in node.operands) for node in graph.nodes)


def test_random_numbers_are_drawn_anew(device: Device, rng: np.random.Generator) -> None:
    """Draws take the seed and the position of each call, between sections that are replayed."""
    graph = training("SGD", dropout=0.5)
    replayed = Replayed(device, graph)
    given = values(rng, graph)
    inputs = replayed.placed(given)
    for call in range(6):
        for i, value in enumerate(graph.inputs):
            if value.is_number:
                given[i] = inputs[i] = call + 1
            else:
                given[i] = over(inputs[i]).copy()
        replayed.check(given, inputs)
    assert replayed.function.captures


def test_a_node_that_uses_the_host_runs_by_itself(device: Device, rng: np.random.Generator) -> None:
    """What it computes at a new place in each call is copied to where the next section reads it."""
    replayed = Replayed(device, cd.graph.trace(lambda x: _long(_long(x).sinh()), cd.ones(2, 2)))
    memory = device.engine.allocate(4)
    device.before["sinh"] = lambda: device.engine.read(memory, 0, 4)
    kept = []
    for _ in range(6):
        kept.append(device.engine.allocate(16))  # so that addresses differ
        before = device.calls
        replayed.check(values(rng, replayed.graph))
    assert [section.captured for section in replayed.function.sections] == [True, False, True]
    assert device.calls - before == 1


def _long(x: Any) -> Any:
    return ((x * 0.5).tanh() + 1).exp() - 1


def test_what_cannot_be_captured_runs_by_itself(device: Device, rng: np.random.Generator) -> None:
    """A node that waits for the stream without saying so fails while its section is captured, and runs all the same."""
    replayed = Replayed(device, cd.graph.trace(lambda x: _long(_long(x).sinh()), cd.ones(2, 2)))
    device.before["sinh"] = lambda: device.engine.stream().synchronize()
    for _ in range(6):
        replayed.check(values(rng, replayed.graph))
    assert replayed.function.single
    assert not device.engine.cupy.cuda.Stream.capturing


def test_memory_written_inside_is_of_one_kind(device: Device, rng: np.random.Generator) -> None:
    """A write through a view reaches the tensor that it shows, also if another node of the tensor uses the host."""

    def writes(x: Any) -> Any:
        y = _long(x)
        z = y.sinh()
        y[0].add_(z[1])
        return _long(y.t()) * z

    replayed = Replayed(device, cd.graph.trace(writes, cd.ones(2, 2)))
    memory = device.engine.allocate(4)
    device.before["sinh"] = lambda: device.engine.read(memory, 0, 4)
    kept = []
    for _ in range(6):
        kept.append(device.engine.allocate(16))
        replayed.check(values(rng, replayed.graph))
    assert any(section.captured for section in replayed.function.sections)


def test_memory_that_outputs_share_is_of_one_kind(device: Device, rng: np.random.Generator) -> None:
    """Results that show one tensor share its memory, also if only a part of its users can be captured."""

    def shares(x: Any) -> Any:
        y = _long(x).sinh()
        return y, _long(y), y.t()

    replayed = Replayed(device, cd.graph.trace(shares, cd.ones(2, 2)))
    memory = device.engine.allocate(4)
    device.before["sinh"] = lambda: device.engine.read(memory, 0, 4)
    kept = []
    for _ in range(6):
        kept.append(device.engine.allocate(16))
        y, _, transposed = replayed.check(values(rng, replayed.graph))
        assert y.buffer is transposed.buffer
    assert replayed.function.captures


def test_graphs_keep_a_part_of_the_memory_only(device: Device, rng: np.random.Generator) -> None:
    """A graph whose intermediate results take more than a quarter of the device's memory is not captured."""
    device.engine.traits = replace(device.engine.traits, memory=4 * 512)
    replayed = Replayed(device, cd.graph.trace(lambda x: _long(_long(x)), cd.ones(16, 16)))
    for _ in range(4):
        replayed.check(values(rng, replayed.graph))
    assert replayed.function.single


def test_written_inputs_that_move_end_in_single_launches(device: Device, rng: np.random.Generator) -> None:
    """A written input is never copied. If it moves again and again, the launches are queued one by one."""

    def writes(x: Any) -> Any:
        x.add_(_long(x))
        return _long(x)

    replayed = Replayed(device, cd.graph.trace(writes, cd.ones(2, 2)))
    kept = []
    for _ in range(MOST_CHANGES + 4):
        given = values(rng, replayed.graph)
        kept.append(replayed.placed(given))
        replayed.check(given, kept[-1])
    assert replayed.function.single
    assert not replayed.function.captures


def test_another_layout_is_not_replayed(chained: Replayed, rng: np.random.Generator) -> None:
    """A transposed input, such as the gradient of a view, is read with its own strides."""
    given = values(rng, chained.graph)
    inputs = chained.placed(given)
    for _ in range(4):
        chained.check(given, inputs)
    other = inputs[0].restrided((4, 4), (1, 4), 0)
    expected = chained.reference(given[0].T, given[1])
    for got, want in zip(chained.function(other, inputs[1]), expected, strict=True):
        np.testing.assert_array_equal(over(got), want)
    chained.check(given, inputs)


def test_another_precision_is_captured_anew(chained: Replayed, rng: np.random.Generator) -> None:
    """Captured products have the precision of their capture."""
    given = values(rng, chained.graph)
    inputs = chained.placed(given)
    for _ in range(4):
        chained.check(given, inputs)
    cd.set_float32_matmul_precision("high")
    try:
        for expected in (7, 7, 0):
            before = chained.device.calls
            chained.check(given, inputs)
            assert chained.device.calls - before == expected
    finally:
        cd.set_float32_matmul_precision("highest")


def test_errors_of_values_are_looked_for_after_a_replay(device: Device, rng: np.random.Generator) -> None:
    """A launch that may report an error is one when it is replayed, too."""
    replayed = Replayed(device, cd.graph.trace(_long, cd.ones(2, 2)))
    errors = device.engine.errors
    device.before["exp"] = lambda: errors.buffer()
    given = values(rng, replayed.graph)
    inputs = replayed.placed(given)
    for _ in range(4):
        errors.possible = False
        replayed.check(given, inputs)
        assert errors.possible
    assert replayed.function.captures


def test_other_streams_wait_for_the_last_call(chained: Replayed, rng: np.random.Generator) -> None:
    """Graphs share memory, so that a call on another stream waits for the call before."""
    given = values(rng, chained.graph)
    inputs = chained.placed(given)
    for _ in range(4):
        chained.check(given, inputs)
    side = chained.device.engine.another_stream()
    with side:
        chained.check(given, inputs)
        assert [entry[0] for entry in side.log if isinstance(entry, tuple)] == ["wait"]
        chained.check(given, inputs)
        assert [entry[0] for entry in side.log if isinstance(entry, tuple)] == ["wait"]


def test_two_graphs_share_their_memory(device: Device, rng: np.random.Generator) -> None:
    """The second graph needs no memory of its own for intermediate results, and both give their results in turn."""
    graphs = [Replayed(device, cd.graph.trace(_long, cd.ones(16, 16))) for _ in range(2)]
    given = values(rng, graphs[0].graph)
    inputs = graphs[0].placed(given)
    sizes = []
    for replayed in graphs:
        for _ in range(4):
            replayed.check(given, inputs)
        sizes.append(replayed.function.memory.pool.statistics(release=False)["reserved"])
    assert graphs[0].function.memory is graphs[1].function.memory
    assert sizes[1] < 2 * sizes[0]
    for replayed in graphs * 2:
        replayed.check(given, inputs)


def test_memory_of_graphs_is_counted_and_ends_with_them(device: Device, rng: np.random.Generator) -> None:
    """It counts as allocated, empty_cache leaves it alone, and it is released with the last graph."""
    engine = device.engine
    replayed = Replayed(device, cd.graph.trace(_long, cd.ones(16, 16)))
    given = values(rng, replayed.graph)
    inputs = replayed.placed(given)
    for _ in range(4):
        replayed.check(given, inputs)
    with_graph = engine.memory(release=True)
    replayed.check(given, inputs)
    alone = engine.pool.statistics(release=True)
    assert with_graph["allocated"] > alone["allocated"]
    del replayed
    gc.collect()
    assert engine.memory(release=True)["allocated"] == engine.pool.statistics(release=True)["allocated"]


def test_unused_memory_is_released_for_a_graph(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a graph runs out of memory, the device's own pool gives back what it keeps."""
    memory = device.engine.graph_memory()
    released: list[bool] = []
    monkeypatch.setattr(device.engine.pool, "statistics", lambda release: released.append(release))
    with pytest.raises(OutOfMemoryError, match="cuda:0 is out of memory: tried to allocate"):
        memory.allocate(2**31)
    assert released == [True]


def test_copies_that_cost_more_than_launches_are_not_made(device: Device, rng: np.random.Generator) -> None:
    """A graph whose results are large compared with its launches is not captured."""

    def many(x: Any) -> Any:
        return [x + i for i in range(6)]

    replayed = Replayed(device, cd.graph.trace(many, cd.ones(2, 2)))
    for _ in range(4):
        replayed.check(values(rng, replayed.graph))
    assert replayed.function.single


def test_few_launches_are_not_captured(device: Device, rng: np.random.Generator) -> None:
    """Three launches are queued as quickly as a graph with its copies."""
    replayed = Replayed(device, cd.graph.trace(lambda x: (x + 1).exp().tanh(), cd.ones(2, 2)))
    for _ in range(4):
        replayed.check(values(rng, replayed.graph))
    assert replayed.function.single


def test_an_error_while_a_kernel_runs_leaves_the_graph_usable(chained: Replayed, rng: np.random.Generator) -> None:
    """The lock is released, and the next call succeeds."""
    given = values(rng, chained.graph)
    inputs = chained.placed(given)
    chained.check(given, inputs)

    def fails() -> None:
        raise ValueError("no")

    chained.device.before["exp"] = fails
    with pytest.raises(ValueError, match="no"):
        chained.function(*inputs)
    del chained.device.before["exp"]
    for _ in range(4):
        chained.check(given, inputs)
    assert chained.function.captures


@contextmanager
def registered(backend: CudaBackend) -> Iterator[Any]:
    """Register a backend on the double under a name of its own, and return a matrix of its device."""
    backend.name = "doubled"
    remove = plugins.add_backend(backend)
    try:
        yield cd.tensor([[1.0, 2.0], [-3.0, 1.0]]).to("doubled")
    finally:
        remove()


def products(x: Any, w: Any) -> Any:
    """Return six products of matrices, which the double of cuBLAS computes, and those of the gradient."""
    for _ in range(6):
        x = x @ w
    return x


def test_products_run_in_every_call(doubles: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiled function and its backward pass are right for new inputs at new addresses. CuPy's products are not
    captured.
    """
    cublas = doubles.Cublas()
    monkeypatch.setattr("candelabra_cuda.engine.CudaEngine.cublas", cublas)
    with registered(CudaBackend(doubles.double())) as weight:
        compiled, counts, kept = cd.compile(products, fullgraph=True), [], []
        for step in range(8):
            x, g = cd.full((2, 2), step + 1.0).requires_grad_(), cd.full((2, 2), step - 2.0)
            (expected,) = cd.autograd.grad(products(x, weight.cpu()), x, g)
            there, before = x.detach().to("doubled").requires_grad_(), len(cublas.calls)
            y = compiled(there, weight)
            (found,) = cd.autograd.grad(y, there, g.to("doubled"))
            counts.append(len(cublas.calls) - before)
            kept.append((y, there, products(x, weight.cpu()).tolist()))
            assert found.tolist() == expected.tolist()
        assert counts[1:] == [12] * 7  # the first call is traced
        assert all(run.single for run in compiled.programs[0].runs)
        for y, _, expected in kept:
            assert y.tolist() == expected


def test_graphs_can_be_disabled(doubles: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment variable and synchronous launches leave the launches single, and ROCm has no graphs."""
    monkeypatch.setattr("candelabra_cuda.engine.CudaEngine.cublas", doubles.Cublas())
    with registered(CudaBackend(doubles.double())) as x:
        graph = cd.graph.trace(products, x, x)
        backend = CudaBackend(doubles.double())
        assert isinstance(backend.compile(graph), ReplayedGraph)
        monkeypatch.setenv("CANDELABRA_CUDA_GRAPHS", "0")
        assert backend.compile(graph) is None
        monkeypatch.delenv("CANDELABRA_CUDA_GRAPHS")
        monkeypatch.setenv("CANDELABRA_BLOCKING", "1")
        function = CudaBackend(doubles.double()).compile(graph)
        assert isinstance(function, ReplayedGraph)
        assert function.single
        hip = doubles.double()
        monkeypatch.setattr(hip.cuda.runtime, "is_hip", True, raising=False)
        assert RocmBackend(hip).compile(graph) is None


def test_collectives_are_not_captured() -> None:
    """A collective runs on the stream of its group, in the order of the program's calls, between captured sections."""

    def function(x: Any, w: Any) -> Any:
        return chain(library.record("c10d_all_reduce")(chain(x, w)[0], "sum", "self"), w)

    graph = cd.graph.trace(function, cd.ones(4, 4), cd.ones(4, 4))
    sections, _ = sections_of(graph, set(), {node: default_kernel(node) for node in graph})
    assert [section.captured for section in sections] == [True, False, True]
    assert [node.name for node in sections[1].graph] == ["c10d_all_reduce"]
