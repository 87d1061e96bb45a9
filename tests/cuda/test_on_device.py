"""Tests that require a GPU: exchange with other libraries, streams, memory, late errors. Run by ``make cuda-check``.

Without a GPU they do not run; the tests with doubles check the calls only.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from typing import Any

import candelabra as cd
import pytest
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
