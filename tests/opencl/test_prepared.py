"""Prepared launches: nodes of graphs on OpenCL devices, whose kernels are planned when the graph is compiled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import pyopencl as cl
import pytest
from candelabra import Tensor
from candelabra.errors import OutOfMemoryError
from candelabra.graph import Graph, compile_graph, trace
from candelabra.library import open_device
from candelabra_clike import Engine
from candelabra_clike.recording import NotRecordable
from candelabra_opencl import launching, prepared
from candelabra_opencl.backend import OpenCLBackend
from candelabra_opencl.engine import OpenCLEngine
from candelabra_opencl.streams import OpenCLStream

from tests import fused_programs as programs
from tests.opencl.test_compiling import DOUBLED


def several(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """Return a product, rows, a sum and a view of a chain."""
    return x @ y.t(), (x - y).exp().softmax(1), (x * y).sum(0), (x + y).relu()[1:]


def names(graph: Graph, engine: OpenCLEngine) -> list[str]:
    """Return the names of the nodes whose launches can be prepared."""
    return [node.name for node in graph if prepared._recorded(node, engine, None) is not None]


def numbers(device: cd.device, count: int = 1) -> list[Tensor]:
    """Return pairs of matrices."""
    return [programs.numbers((9, 21), cd.float32, device) * (i + 1) for i in range(2 * count)]


def test_results_have_the_bits_of_eager_calls(device: cd.device) -> None:
    """A compiled function launches on new values what an eager call launches, and each call has memory of its own."""
    x, y, a, b = numbers(device, 2)
    run = compile_graph(trace(several, x, y))
    results = [run(x._payload, y._payload), run(a._payload, b._payload)]
    for got, arguments in zip(results, ((x, y), (a, b)), strict=True):
        for payload, want in zip(got, several(*arguments), strict=True):
            assert bytes(open_device(device).backend.to_host(payload)) == want.cpu().contiguous().numpy().tobytes()


def test_nodes_that_are_prepared(device: cd.device, engine: OpenCLEngine) -> None:
    """Draws, checked indices, views and writes in place depend on the call, and run as in eager calls."""

    def program(x: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
        return x @ x.t(), F.dropout(x, 0.5), x.clone().exp_(), F.embedding(rows, x), x.sum(1)

    x = programs.numbers((9, 21), cd.float32, device)
    found = names(trace(program, x, cd.tensor([0, 1], device=device)), engine)
    assert {"matmul", "sum"} <= set(found)
    assert {"exp", "t", "embedding", "random_uniform"}.isdisjoint(found)


def test_other_layouts_than_those_of_the_trace(device: cd.device) -> None:
    """Arrays with other strides or another offset are served as in an eager call."""
    x, y = numbers(device)
    run = compile_graph(trace(lambda x, y: x @ y.t(), x, y))
    for other in (x.t().contiguous().t(), cd.cat([y, x])[9:]):
        (got,) = run(other._payload, y._payload)
        assert bytes(open_device(device).backend.to_host(got)) == (other @ y.t()).cpu().numpy().tobytes()


def test_threads_have_kernel_objects_of_their_own(device: cd.device) -> None:
    """Threads call one compiled function at once, each on its own values."""
    compiled = cd.compile(lambda x, y: (x @ y.t()).relu().sum(1), fullgraph=True)
    pairs = [(x * i, y) for i in range(4) for x, y in [numbers(device)]]
    expected = [compiled.function(*pair).tolist() for pair in pairs]
    compiled(*pairs[0])
    found: list[Any] = [None] * 4

    def call(i: int) -> None:
        for _ in range(5):
            found[i] = compiled(*pairs[i]).tolist()

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_the_current_stream_runs_prepared_launches(device: cd.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside a stream, a compiled call queues its launches there, and the stream keeps their memory."""
    x, y = numbers(device)
    run = compile_graph(trace(lambda x, y: x @ y.t(), x, y))
    backend = open_device(device).backend
    assert isinstance(backend, OpenCLBackend)
    keepers = []
    monkeypatch.setattr(OpenCLStream, "keep", lambda stream, event, used: keepers.append((stream, len(used))))
    with backend.stream(0) as stream:
        (got,) = run(x._payload, y._payload)
        stream.synchronize()
    assert keepers == [(stream, 3)]
    assert bytes(backend.to_host(got)) == (x @ y.t()).cpu().numpy().tobytes()


@pytest.mark.parametrize("again", [True, False])
def test_memory_that_is_missing(engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    """A prepared launch that lacks memory is repeated once when the pool is released, and raises otherwise."""
    kernel = engine.kernel(DOUBLED)
    enqueue_nd_range, failures = launching.ENQUEUE, [1] if again else [1, 2]

    def enqueue(*arguments: Any) -> Any:
        if failures:
            failures.pop()
            raise cl.MemoryError("clEnqueueNDRangeKernel", cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE)
        return enqueue_nd_range(*arguments)

    source, out = engine.allocate(8), engine.allocate(8)
    engine.write(source, 0, memoryview(bytes([1, 0, 0, 0, 2, 0, 0, 0])))
    monkeypatch.setattr(launching, "ENQUEUE", enqueue)
    fresh = launching.OpenCLKernel(engine, replace(DOUBLED, group=1), kernel.program)
    launch: Callable[..., None] | None = fresh.prepared(2, [out, source])
    assert launch is not None
    if again:
        launch(out, source)
        assert list(memoryview(bytes(engine.read(out, 0, 8))).cast("i")) == [2, 4]
    else:
        with pytest.raises(OutOfMemoryError, match="'doubled' could not be launched"):
            launch(out, source)


def test_launches_of_no_items(engine: OpenCLEngine) -> None:
    """A launch of no work-items needs no function, and a forgotten kernel object is made again."""
    kernel = engine.kernel(DOUBLED)
    assert kernel.prepared(0, [None, None]) is None
    assert kernel.prepared((2, 0), [None, None]) is None
    launch = kernel.prepared(1, [None, None])
    assert launch is not None
    out = engine.allocate(4)
    engine.write(out, 0, memoryview(bytes([3, 0, 0, 0])))
    for _ in range(2):
        launch(out, out)
        kernel.forget_thread()
    assert bytes(engine.read(out, 0, 4)) == bytes([12, 0, 0, 0])


def test_recorders_have_no_memory(engine: OpenCLEngine) -> None:
    """A kernel that reads, writes or copies elements itself is not recorded."""
    recorder: Engine = engine.recorder
    block = recorder.allocate(4)
    for call in (
        lambda: recorder.read(block, 0, 4),
        lambda: recorder.write(block, 0, memoryview(b"")),
        lambda: recorder.copy(block, 0, block, 0, 4),
        lambda: recorder.before_writing([], [], False),
    ):
        with pytest.raises(NotRecordable):
            call()
    recorder.synchronize()


def test_collectives_run_when_the_function_is_called(device: cd.device) -> None:
    """A collective takes part in the order of all ranks, so none takes place while a graph is compiled."""
    from candelabra_distributed import collectives

    def summed(x: Tensor) -> Tensor:
        return collectives.c10d_all_gather(x.t(), 1, "self").exp()

    x = programs.numbers((9, 21), cd.float32, device)
    graph = trace(summed, x)
    assert "c10d_all_gather" in [node.name for node in graph if node.is_ordered]
    run = cd.compile(summed, fullgraph=True)
    for each in (x, x * 2, x + 1):
        assert cd.equal(run(each), summed(each))
