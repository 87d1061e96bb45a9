"""Tests that require a GPU: exchange with other libraries, streams, memory, late errors. Run by ``make cuda-check``.

Without a GPU they do not run; the tests with doubles check the calls only.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
import warnings
from functools import partial
from typing import Any

import candelabra as cd
import candelabra.nn.functional as F
import pytest
from candelabra import nn
from candelabra.errors import OutOfMemoryError
from candelabra_cuda import from_cuda_array_interface

pytestmark = pytest.mark.skipif(not cd.cuda.is_available(), reason="there is no GPU")


@pytest.fixture
def cupy() -> Any:
    """Return CuPy itself."""
    return pytest.importorskip("cupy")


def values() -> Any:
    """Return a tensor on the GPU whose layout is not contiguous."""
    return cd.arange(12, dtype=cd.float32, device="cuda").reshape(3, 4).t()


def test_cupy_reads_our_memory(cupy: Any) -> None:
    """Both protocols give an array over the same memory, with its strides."""
    x = values()
    for array in (cupy.from_dlpack(x), cupy.asarray(x)):
        assert array.tolist() == x.tolist()
        array += 1
        assert array.tolist() == x.tolist()


def test_we_read_memory_of_cupy(cupy: Any) -> None:
    """Both protocols share the memory."""
    array = cupy.arange(12, dtype=cupy.float32).reshape(3, 4).T
    for made in (cd.from_dlpack(array), from_cuda_array_interface(array)):
        assert made.device.type == "cuda"
        array += 1
        assert made.tolist() == array.tolist()


def test_pytorch_exchanges_memory() -> None:
    """DLPack works in both directions, if PyTorch is installed too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own warning
        torch = pytest.importorskip("torch")
    x = values()
    assert torch.from_dlpack(x).tolist() == x.tolist()
    assert cd.from_dlpack(torch.arange(6, device="cuda").reshape(2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_work_of_another_stream_is_waited_for(cupy: Any) -> None:
    """A consumer of the protocols reads the values after our stream's writes."""
    x = cd.rand(2048, 2048, device="cuda")
    for _ in range(50):
        x = (x @ x).clamp(0, 1)
    with cupy.cuda.Stream(non_blocking=True):
        total = float(cupy.asarray(x).sum())
    assert total == pytest.approx(float(x.sum().item()), rel=1e-4)


def test_streams_are_ordered_by_events() -> None:
    """A stream that waits for another one's event sees its results."""
    side = cd.cuda.Stream()
    x = cd.rand(1024, 1024, device="cuda")
    cd.cuda.synchronize()
    with side:
        y = x
        for _ in range(20):
            y = (y @ x).clamp(0, 1)
        done = side.record()
    done.wait()
    assert float((y - y).abs().sum().item()) == 0.0
    start = side.record()
    end = side.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0


def test_a_program_goes_on_after_memory_ran_out() -> None:
    """The error is typed and has the sizes; smaller allocations succeed after it."""
    with pytest.raises(OutOfMemoryError, match=r"cuda:0 is out of memory: tried to allocate \d+ bytes"):
        cd.empty(1 << 45, device="cuda")
    assert cd.ones(3, device="cuda").tolist() == [1, 1, 1]


def test_memory_is_counted_and_given_back() -> None:
    """Allocations are counted, and empty_cache releases all unused memory."""
    gc.collect()
    cd.cuda.synchronize()
    before = cd.cuda.memory_allocated()
    x = cd.empty(1 << 20, device="cuda")
    held = cd.cuda.memory_allocated()
    assert held - before == 4 << 20
    del x
    cd.cuda.empty_cache()
    assert cd.cuda.memory_allocated() == held - (4 << 20)
    assert cd.cuda.memory_reserved() >= cd.cuda.memory_allocated()


def test_an_index_out_of_bounds_is_found_by_whoever_waits() -> None:
    """The kernel detects it, the next synchronisation raises it, and the device continues to work."""
    x = cd.arange(5, device="cuda")
    with pytest.raises(IndexError, match="index_select"):
        x.index_select(0, cd.tensor([7], device="cuda")).tolist()
    assert x.tolist() == [0, 1, 2, 3, 4]


class Scale(nn.Module):
    """A factor for each feature."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(cd.ones(64))

    def forward(self, x: Any) -> Any:
        return x * self.weight


def training_step(products: bool) -> tuple[Any, Any, Any]:
    """Return a training step of a network of many small launches, its parameters, and its inputs."""
    with cd.random.fork_rng():
        cd.manual_seed(0)
        layer = partial(nn.Linear, 64, 64) if products else Scale
        model = nn.Sequential(*[each for _ in range(6) for each in (layer(), nn.LayerNorm(64), nn.GELU())]).to("cuda")
        x = cd.rand(32, 64).to("cuda")
    optimizer = cd.optim.AdamW(model.parameters(), lr=0.01, eps=0.01)

    def step(x: Any, target: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x)[:, :8], target)
        loss.backward()
        optimizer.step()
        return loss

    return step, list(model.parameters()), (x, cd.arange(32, device="cuda") % 8)


def seconds(step: Any, inputs: Any, times: int = 50) -> float:
    """Return the time of a step, the best of five."""
    found = []
    for _ in range(5):
        cd.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(times):
            step(*inputs)
        cd.cuda.synchronize()
        found.append((time.perf_counter() - start) / times)
    return min(found)


@pytest.mark.parametrize("products", [False, True])
def test_training_steps_replay_captured_launches(monkeypatch: pytest.MonkeyPatch, products: bool) -> None:
    """Ten steps in a graph equal ten eager ones, and ten with single launches, up to the rounding of their kernels.

    All but the optimizer's launches are replayed, unless products lie between them. The times are printed.
    """
    steps, times = {}, {}
    for kind in ("eager", "single launches", "graph"):
        monkeypatch.setenv("CANDELABRA_CUDA_GRAPHS", "1" if kind == "graph" else "0")
        step, parameters, (x, target) = training_step(products)
        run = step if kind == "eager" else cd.compile(step, fullgraph=True)
        losses = [run(x + 0.01 * i, target) for i in range(10)]
        steps[kind] = [t.detach().cpu() for t in (*losses, *parameters, *[p.grad for p in parameters])]
        times[kind] = seconds(run, (x, target))
        if kind == "graph" and not products:
            (replayed,) = run.programs[0].runs
            assert not replayed.single
            assert len(replayed.captures) == sum(section.captured for section in replayed.sections) > 0
            single = [node for s in replayed.sections if not s.captured for node in s.graph.nodes]
            assert all(node.form == "rows" or node.is_view for node in single), single
    sys.stdout.write(f"{ {kind: f'{1e6 * value:.0f} µs' for kind, value in times.items()} }\n")
    for graph, single, eager in zip(steps["graph"], steps["single launches"], steps["eager"], strict=True):
        assert cd.allclose(graph, single, rtol=1e-4, atol=1e-5)
        assert cd.allclose(graph, eager, rtol=1e-3, atol=1e-4)


def test_graphs_outlive_other_work_on_their_memory() -> None:
    """Replays are right while other tensors come and go, other streams work, and the cache is emptied."""

    def chain(x: Any) -> Any:
        for _ in range(8):
            x = (x.softmax(-1) * 3).tanh().cumsum(0)
        return x

    compiled, kept = cd.compile(chain, fullgraph=True), []
    side = cd.cuda.Stream()
    for call in range(30):
        x = cd.rand(48, 48, device="cuda") + 0.001 * call
        noise = [cd.full((48, 48), float("nan"), device="cuda") for _ in range(call % 5)]
        if call % 7 == 3:
            cd.cuda.empty_cache()
        if call % 10 == 8:
            cd.cuda.synchronize()
            with side:
                y = compiled(x)
                side.record().synchronize()
        else:
            y = compiled(x)
        kept.append((y, x))
        del noise
    for y, x in kept:
        assert cd.allclose(y, chain(x), rtol=1e-4, atol=1e-5)
    assert compiled.programs[0].runs[0].captures


def test_random_numbers_of_replayed_graphs_are_those_of_eager_calls() -> None:
    """Each call draws other numbers, between launches that are replayed."""

    def noisy(x: Any) -> Any:
        for _ in range(4):
            x = x * 1.5 - 0.25
            x = F.dropout((x @ x).tanh() @ x, 0.3) @ x @ x @ x @ x
            x = x / x.abs().amax()
        return x

    found = []
    x = cd.rand(32, 32, device="cuda")
    for function in (noisy, cd.compile(noisy, fullgraph=True)):
        cd.manual_seed(7)
        found.append([function(x).cpu() for _ in range(6)])
    for eager, replayed in zip(*found, strict=True):
        assert cd.equal(eager == 0, replayed == 0)
        assert cd.allclose(eager, replayed, rtol=1e-3, atol=1e-4)


BROKEN = """
import candelabra as cd
from candelabra._plugins.registry import backend
from candelabra_clike import Source
from candelabra_clike.source import writes
engine = backend("cuda")[0].engine(0)
engine.compile(Source("stray", (writes("out", "u32"),), "out[1ull << 40] = 1;"))(1, engine.allocate(4))
cd.cuda.synchronize()
"""


@pytest.mark.parametrize(("blocking", "words"), [("0", "CANDELABRA_BLOCKING=1"), ("1", "'stray' failed")])
def test_a_late_error_is_attributed(blocking: str, words: str) -> None:
    """A stray write ends the context, so it runs in a separate process; a synchronous launch names the kernel."""
    environment = {**os.environ, "CANDELABRA_BLOCKING": blocking}
    done = subprocess.run([sys.executable, "-c", BROKEN], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert words in done.stderr
