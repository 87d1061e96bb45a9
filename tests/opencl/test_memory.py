"""Memory of a device: statistics, the pool, and running out of memory."""

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import candelabra as cd
import numpy as np
import pyopencl as cl
import pytest
from candelabra.errors import OutOfMemoryError
from candelabra.library import plugins
from candelabra_clike import Engine
from candelabra_opencl.backend import OpenCLBackend
from candelabra_opencl.engine import ASYNC_WRITE_SIZE
from candelabra_opencl.memory import OpenCLMemory, address_space_left

MEBI = 1 << 20


@pytest.fixture
def small() -> Iterator[OpenCLBackend]:
    """Install the device with 8 MiB, at most 6 of them in one buffer."""
    backend = OpenCLBackend("small", memory=8 * MEBI, largest=6 * MEBI)
    remove = plugins.add_backend(backend)
    yield backend
    remove()


def megabytes(count: float) -> cd.Tensor:
    """Return a tensor on the small device."""
    return cd.empty(int(count * MEBI), dtype=cd.uint8, device="small")


def test_statistics_count_tensors_and_blocks(small: OpenCLBackend) -> None:
    """`allocated` counts tensors, `reserved` the pool, `peak` the maximum; released blocks do not count."""
    assert cd.small.memory_allocated() == 0  # type: ignore[attr-defined]
    tensor = megabytes(2)
    held = small.memory(0)
    assert held["allocated"] == 2 * MEBI
    assert held["reserved"] >= 2 * MEBI
    assert held["blocks"] == 1
    del tensor
    after = small.memory(0)
    assert (after["allocated"], after["held"], after["peak"]) == (0, 1, 2 * MEBI)
    assert after["reserved"] >= 2 * MEBI
    assert small.memory(0, release=True) == {
        "allocated": 0, "reserved": 0, "peak": 2 * MEBI, "blocks": 0, "held": 0,
    }  # fmt: skip


def test_the_peak_is_counted_anew_after_a_reset(small: OpenCLBackend) -> None:
    """It is what is in use at the reset, until more is."""
    tensor = megabytes(1)
    megabytes(2)
    assert cd.small.max_memory_allocated() == 3 * MEBI  # type: ignore[attr-defined]
    cd.small.reset_peak_memory_stats()  # type: ignore[attr-defined]
    assert small.memory(0)["peak"] == MEBI == tensor.numel()


def test_freed_memory_is_used_again(small: OpenCLBackend) -> None:
    """A tensor of the same size reuses the block of a deleted one without a call of the driver."""
    for _ in range(5):
        megabytes(2)
    assert small.memory(0)["held"] == 1


def test_held_blocks_are_given_back_under_pressure(small: OpenCLBackend) -> None:
    """Unused blocks in the pool do not prevent the allocation of a tensor of another size."""
    for size in (2, 3, 4, 5, 6):
        megabytes(size)
        assert small.memory(0)["reserved"] <= 8 * MEBI
    assert small.memory(0)["allocated"] == 0


def test_running_out_is_a_typed_error_with_the_numbers(small: OpenCLBackend) -> None:
    """An allocation beyond the free memory is refused, and the program continues."""
    kept = megabytes(5)
    with pytest.raises(
        OutOfMemoryError, match=r"small:0 is out of memory: tried to allocate 4\.0 MiB; 5\.0 MiB of 8\.0 MiB are in use"
    ):
        megabytes(4)
    kept.mul_(0)
    assert not kept[-1].item()
    del kept
    assert megabytes(4).shape == (4 * MEBI,)


def test_one_buffer_has_a_largest_size(small: OpenCLBackend) -> None:
    """The error names the driver's limit for a single buffer."""
    with pytest.raises(
        OutOfMemoryError, match=r"tried to allocate 7\.0 MiB, and the driver allows at most 6\.0 MiB at once"
    ):
        megabytes(7)


class _Refusing:
    """A pool that refuses a number of times."""

    def __init__(self, pool: Any, times: int) -> None:
        self.pool, self.times, self.released = pool, times, 0

    def allocate(self, nbytes: int) -> Any:
        if self.times:
            self.times -= 1
            raise cl.MemoryError("clCreateBuffer failed: MEM_OBJECT_ALLOCATION_FAILURE")
        return self.pool.allocate(nbytes)

    def free_held(self) -> None:
        self.released += 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pool, name)


@pytest.mark.parametrize("times", [1, 2])
def test_a_refusal_of_the_driver_is_tried_again_once(engine: Engine, times: int) -> None:
    """The pool is released before the second attempt; only then the error is raised."""
    waited: list[int] = []
    queue = cl.CommandQueue(engine.context)  # type: ignore[attr-defined]
    memory = OpenCLMemory("here:0", queue, 1 << 30, 1 << 30, lambda: waited.append(1))
    refusing = _Refusing(memory.pool, times)
    memory.pool = refusing  # type: ignore[misc, assignment]
    if times == 1:
        assert memory.allocate(100).size >= 100
    else:
        with pytest.raises(OutOfMemoryError, match=r"here:0 is out of memory: tried to allocate 100 bytes; 0 bytes of"):
            memory.allocate(100)
    assert (refusing.released, waited) == (1, [1])


@pytest.mark.parametrize("nbytes", [1, ASYNC_WRITE_SIZE, ASYNC_WRITE_SIZE + 1])
def test_the_hosts_buffer_may_change_after_a_write(engine: Engine, nbytes: int) -> None:
    """Small writes are queued with a copy of the data, large ones are synchronous."""
    data = np.arange(nbytes, dtype=np.uint8)
    wanted = data.copy()
    buffer = engine.allocate(nbytes)
    engine.write(buffer, 0, memoryview(data))  # type: ignore[arg-type]
    data[:] = 0
    assert bytes(engine.read(buffer, 0, nbytes)) == wanted.tobytes()


def test_nothing_is_read_from_nothing(engine: Engine) -> None:
    """A read of zero bytes does not call the driver, which would refuse it."""
    assert bytes(engine.read(engine.allocate(1), 0, 0)) == b""


def test_parts_of_buffers_are_copied(engine: Engine) -> None:
    """Offsets are in bytes, of the source and of the destination."""
    source, destination = engine.allocate(8), engine.allocate(8)
    engine.write(source, 0, memoryview(bytes(range(8))))
    engine.write(destination, 0, memoryview(bytes(8)))
    engine.copy(destination, 1, source, 4, 3)
    assert bytes(engine.read(destination, 0, 8)) == bytes([0, 4, 5, 6, 0, 0, 0, 0])


@pytest.mark.filterwarnings("ignore::candelabra.errors.FallbackWarning")
def test_tensors_of_a_dead_graph_leave_no_memory(device: cd.device, engine: Engine) -> None:
    """Steps of forward, backward and update end with as much memory as the first, on the device and in its pool."""
    weight = cd.ones(64, 64).to(device).requires_grad_()
    x = cd.ones(16, 64).to(device)

    def step() -> tuple[int, int]:
        (x @ weight).tanh().mul(x).relu().sum().backward()
        with cd.no_grad():
            weight.sub_(weight.grad * 0.01)
        weight.grad = None
        gc.collect(0)
        engine.synchronize()
        statistics = engine.memory.statistics(False)  # type: ignore[attr-defined]
        return statistics["allocated"], statistics["reserved"]

    settled = [step() for _ in range(5)][-1]
    for _ in range(30):
        last = step()
    assert last == settled


LIMITED = """
import resource
import candelabra as cd
x = cd.arange(10.0, device="opencl:0")
assert (x + 1).sum().item() == 55
with open("/proc/self/statm") as file:
    taken = int(file.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (600 << 20), -1))
kept = []
try:
    for i in range(20):
        kept.append(cd.zeros(25_000_000, device="opencl:0") + i)
        assert kept[-1][-1].item() == i
except cd.OutOfMemoryError as error:
    print(error)
assert 0 < len(kept) < 7
del kept
print(cd.ones(25_000_000, device="opencl:0").sum().item())
"""


def test_a_limit_of_the_process_is_an_error_and_no_abort() -> None:
    """PoCL aborts the process if it cannot allocate a buffer at its first use, so the limit is checked before."""
    found = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True)
    refused, answer = found.stdout.splitlines()
    assert refused.startswith("opencl:0 is out of memory: tried to allocate 95.4 MiB; ")
    assert float(answer) == 25e6


def test_without_a_limit_any_amount_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a limit of the address space is a bound, on systems that say what is taken."""
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert address_space_left() == float("inf")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 60, 1 << 60))
    assert 1 << 59 < address_space_left() < 1 << 60
