"""Memory, streams, launches and errors of the CUDA engine: the calls that it makes to the double of CuPy."""

import threading
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from candelabra.dtypes import float32
from candelabra.errors import OutOfMemoryError
from candelabra_clike import Source
from candelabra_clike.source import number, reads, writes
from candelabra_cuda.arrays import from_cupy, over_cupy
from candelabra_cuda.backend import CudaBackend
from candelabra_cuda.engine import CudaEngine
from candelabra_cuda.streams import CudaStream

SCALE = Source(
    "scale",
    (writes("out", "f32"), reads("a", "f32"), number("n"), number("factor", "f64"), number("shift", "i32")),
    "if (GLOBAL_ID < n) { out[GLOBAL_ID] = a[GLOBAL_ID] * (f32)factor + (f32)shift; }",
)


def test_bytes_come_back_as_they_were_written(engine: Any) -> None:
    """Written bytes are read back, also with an offset, and the source may change after the call."""
    memory = engine.allocate(64)
    data = bytearray(range(16))
    engine.write(memory, 8, memoryview(data))
    data[:] = bytes(16)
    assert bytes(engine.read(memory, 8, 16)) == bytes(range(16))
    assert bytes(engine.read(memory, 0, 0)) == b""


def test_large_writes_are_not_staged(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above the limit of pinned memory a copy waits for the stream and runs at once."""
    monkeypatch.setattr("candelabra_cuda.memory.PINNED_LIMIT", 8)
    memory = engine.allocate(64)
    engine.write(memory, 0, memoryview(bytes(range(16))))
    assert bytes(engine.read(memory, 0, 16)) == bytes(range(16))
    assert "synchronize" in engine.stream().log


def test_staged_memory_is_kept_until_its_copy_is_done(engine: Any) -> None:
    """Pinned memory is released only when the event after the copy is done."""
    memory = engine.allocate(64)
    engine.write(memory, 0, memoryview(b"abcd"))
    engine.write(memory, 0, memoryview(b"efgh"))
    assert len(engine._staging._running) == 2
    engine.stream().synchronize()
    engine.write(memory, 0, memoryview(b"ijkl"))
    assert len(engine._staging._running) == 1


def test_writes_are_complete_when_other_streams_could_read_them(engine: Any) -> None:
    """With several streams the host waits for each copy, and a new stream for those before it: only events order
    streams, and nothing records one after a copy from the host.
    """
    memory = engine.allocate(64)
    engine.write(memory, 0, memoryview(b"abcd"))
    (event, _) = engine._staging._running[0]
    assert not event.done
    stream = engine.another_stream()
    assert event.done
    assert not engine._staging._running
    for current in (stream, engine.cupy.cuda.Stream.null):
        with current:
            engine.write(memory, 0, memoryview(b"efgh"))
        assert current.events[-1].done
        assert not engine._staging._running


def test_large_writes_are_queued_on_the_current_stream(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that does not block would not wait for a copy that is queued on the default stream."""
    monkeypatch.setattr("candelabra_cuda.memory.PINNED_LIMIT", 8)
    used: list[int] = []
    monkeypatch.setattr(engine.runtime, "memcpyAsync", lambda *arguments: used.append(arguments[-1]))
    stream = engine.another_stream()
    with stream:
        engine.write(engine.allocate(64), 0, memoryview(bytes(range(16))))
    assert used == [stream.ptr]
    assert stream.log[-1] == "synchronize"


def test_running_out_of_memory_is_a_typed_error_with_the_numbers(engine: Any) -> None:
    """The text has the requested and the used bytes, and the engine continues."""
    kept = engine.allocate(100)
    with pytest.raises(OutOfMemoryError, match=r"cuda:0 is out of memory: tried to allocate 2147483648 bytes, 512 are"):
        engine.allocate(2**31)
    assert engine.pool.statistics(release=True) == {"allocated": 512, "reserved": 512, "peak": 512}
    assert kept
    assert engine.allocate(10)


def test_dropped_memory_waits_for_every_stream(engine: Any) -> None:
    """Another stream may still read memory that its own stream would reuse; it is free when both are done."""
    first, second = engine.another_stream(), engine.another_stream()
    engine.allocate(512)  # deleted at once
    engine.allocate(512)
    assert engine.pool.statistics(release=False)["allocated"] == 1024
    for stream in (engine.cupy.cuda.Stream.null, first):
        stream.synchronize()
        engine.pool.statistics(release=False)
        assert engine.pool.statistics(release=False)["allocated"] == 1024
    second.synchronize()
    assert engine.pool.statistics(release=False)["allocated"] == 0


def test_held_memory_is_waited_for_before_there_is_none(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory held by streams is released when they are done, and the allocation is tried again."""
    engine.another_stream()
    pool = engine.pool
    malloc = pool._malloc
    asked: list[int] = []

    def scarce(nbytes: int) -> Any:
        asked.append(nbytes)
        if pool._pool.used + nbytes > 1024:
            raise pool._exhausted("no more")
        return malloc(nbytes)

    monkeypatch.setattr(type(pool), "_malloc", property(lambda self: scarce), raising=False)
    del pool.__dict__["_malloc"]
    engine.allocate(1024)  # deleted at once
    kept = engine.allocate(1024)
    assert asked == [1024, 1024, 1024]
    with pytest.raises(OutOfMemoryError, match="tried to allocate 512 bytes, 1024 are in use"):
        engine.allocate(512)
    assert kept


def test_results_of_cupy_are_held_too(engine: Any) -> None:
    """They use the same pool, and another stream may use them."""
    stream = engine.another_stream()
    with engine.pool.serving_cupy():
        owner = engine.pool._malloc(512)
    adopted = engine.pool.adopt(owner)
    assert adopted == owner.ptr
    del adopted, owner
    assert engine.pool.statistics(release=False)["allocated"] == 512
    for each in (engine.cupy.cuda.Stream.null, stream):
        each.synchronize()
    assert engine.pool.statistics(release=False)["allocated"] == 0


def test_with_one_stream_dropped_memory_is_free_at_once(engine: Any) -> None:
    """Nothing else can use the memory, and no event is recorded."""
    engine.allocate(512)
    assert engine.pool.statistics(release=False)["allocated"] == 0
    assert engine.pool._deferred is None


def test_streams_come_again_in_turn(engine: Any) -> None:
    """There are 32 streams in addition to the default one, and none is destroyed."""
    made = [engine.another_stream() for _ in range(70)]
    assert len({id(stream) for stream in made}) == 32
    assert made[0] is made[32] is made[64]


def test_the_peak_is_what_was_in_use_at_once(engine: Any) -> None:
    """Freed memory in the pool does not count, neither before nor after its release."""
    for _ in range(10):
        engine.allocate(1000)
    kept = [engine.allocate(1000) for _ in range(3)]
    del kept[0]
    assert engine.pool.statistics(release=False) == {"allocated": 2048, "reserved": 3072, "peak": 3072}
    assert engine.pool.statistics(release=True) == {"allocated": 2048, "reserved": 2048, "peak": 3072}
    engine.pool.reset_peak()
    assert engine.pool.statistics(release=False)["peak"] == 2048


def test_memory_is_counted_over_threads(engine: Any) -> None:
    """Blocks that threads allocate and free concurrently are counted once each."""

    def work() -> None:
        for _ in range(300):
            engine.allocate(512)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = engine.allocate(512)
    assert engine.pool._used == 512
    assert kept


def test_statistics_are_those_of_the_device(doubles: ModuleType) -> None:
    """CuPy's pool uses the thread's current device, so this device is made current first."""
    cupy = doubles.double(devices=2)
    backend = CudaBackend(cupy)
    backend.engine(1)
    cupy.cuda.runtime.setDevice(0)
    backend.memory(1)
    assert cupy.cuda.runtime.device == 1


def test_what_cupy_allocates_is_of_the_same_pool(engine: Any, doubles: ModuleType) -> None:
    """Within a kernel on CuPy its arrays are counted, and its MemoryError becomes the typed error."""
    x = engine.empty((3,), float32)

    used = engine.pool.statistics(release=False)["allocated"]
    kept: list[Any] = []
    over_cupy(lambda a: kept.append(doubles.ALLOCATORS[-1](1000)))(x)
    assert engine.pool.statistics(release=False)["allocated"] == used + 1024
    words = "cuda:0 is out of memory: Out of memory allocating 2,147,483,648 bytes, "
    with pytest.raises(OutOfMemoryError, match=words):
        over_cupy(lambda a: doubles.ALLOCATORS[-1](2**31))(x)
    assert doubles.ALLOCATORS == []


def test_a_kernel_over_cupy_sees_our_memory(engine: Any) -> None:
    """Arguments are views with their strides, and results are payloads over the same memory and strides."""
    x = engine.empty((2, 3), float32)
    engine.write(x.buffer, 0, memoryview(np.arange(6, dtype="f4")).cast("B"))
    seen: list[Any] = []

    def kernel(a: Any, pair: Any, number: Any) -> Any:
        seen.append((a.tolist(), [part.tolist() for part in pair], number))
        return a, number

    view = x.restrided((3,), (1,), 3)
    turned = x.restrided((3, 2), (1, 3), 0)
    out, number = over_cupy(kernel)(turned, [view], 7)
    assert seen == [([[0, 3], [1, 4], [2, 5]], [[3, 4, 5]], 7)]
    assert number == 7
    assert (int(out.buffer), out.shape, out.strides, out.dtype) == (int(x.buffer), (3, 2), (1, 3), float32)


def test_an_array_of_cupy_that_runs_backwards_is_copied(engine: Any, doubles: ModuleType) -> None:
    """Tensors have no negative strides."""
    array = np.arange(4, dtype="f4").view(doubles.ndarray)
    made = from_cupy(array[::-1], engine)
    assert (made.strides, made.shape) == ((1,), (4,))
    assert int(made.buffer) != array.ctypes.data


def test_a_launch_packs_its_arguments_as_a_kernel_has_them(engine: Any, cupy: Any, doubles: ModuleType) -> None:
    """Pointers, indices and numbers have their natural alignment, and the number of work-items is last."""
    launch = engine.compile(SCALE)
    out, a = engine.allocate(4000), engine.allocate(4000)
    launch(1000, out, a, 1000, 2.5, -3)
    (grid, block, stream, data) = cupy.cuda.driver.launches[-1]
    assert (grid, block, stream) == ((4, 1, 1), (256, 1, 1), engine.stream().ptr)
    assert doubles.unpacked("QQIdiI", data) == (int(out), int(a), 1000, 2.5, -3, 1000)


def test_a_launch_of_groups_has_the_size_that_the_source_says(engine: Any, cupy: Any) -> None:
    """Groups become blocks along three dims."""
    source = Source("grouped", (writes("out", "u32"),), "out[GROUP_ID] = LOCAL_ID;", group=64)
    launch = engine.compile(source)
    launch((5, 7), engine.allocate(40))
    assert cupy.cuda.driver.launches[-1][:2] == ((5, 7, 1), (64, 1, 1))


def test_nothing_is_launched_for_nothing(engine: Any, cupy: Any) -> None:
    """A count of 0 launches nothing, since the driver would refuse it."""
    engine.compile(SCALE)(0, engine.allocate(4), engine.allocate(4), 0, 1.0, 0)
    engine.compile(Source("none", (writes("out", "u32"),), "out[0] = 1;", group=64))((3, 0), engine.allocate(4))
    assert cupy.cuda.driver.launches == []


def test_equal_sources_are_compiled_once(engine: Any) -> None:
    """Equal sources share one compiled kernel."""
    assert engine.compile(SCALE) is engine.compile(Source(SCALE.name, SCALE.parameters, SCALE.body))


def test_threads_pack_their_own_arguments(engine: Any, cupy: Any, doubles: ModuleType) -> None:
    """Four threads that launch one kernel do not mix their arguments."""
    launch = engine.compile(SCALE)
    memory = engine.allocate(4)

    def run(own_arguments: int) -> None:
        for _ in range(200):
            launch(1, memory, memory, own_arguments, float(own_arguments), own_arguments)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = [doubles.unpacked("QQIdiI", data)[2:5] for _, _, _, data in cupy.cuda.driver.launches]
    assert len(seen) == 800
    assert all(a == b == c for a, b, c in seen)


def test_a_thread_gets_its_context_at_its_first_launch(engine: Any, cupy: Any) -> None:
    """The driver's calls require a context, and a new thread has none until it calls the runtime."""
    launch = engine.compile(SCALE)
    memory = engine.allocate(4)
    launch(1, memory, memory, 1, 1.0, 0)
    made: list[int] = []
    cupy.cuda.runtime.setDevice = made.append
    thread = threading.Thread(target=lambda: [launch(1, memory, memory, 1, 1.0, 0) for _ in range(3)])
    thread.start()
    thread.join()
    launch(1, memory, memory, 1, 1.0, 0)
    assert made == [0]


def test_a_late_error_says_how_to_find_its_operator(engine: Any, cupy: Any, doubles: ModuleType) -> None:
    """The error of a synchronisation names the variable that makes every launch synchronous."""
    cupy.cuda.runtime.failing = doubles.CUDARuntimeError("cudaErrorIllegalAddress")
    with pytest.raises(
        RuntimeError, match=r"cuda:0: an earlier operation failed \(set the .* CANDELABRA_BLOCKING=1.*IllegalAddress"
    ):
        engine.synchronize()


def test_a_blocking_engine_names_the_operator(cupy: Any, doubles: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable set, the launch itself raises, with the kernel's name."""
    monkeypatch.setenv("CANDELABRA_BLOCKING", "1")
    engine = CudaEngine(cupy, 0, several=False)
    launch = engine.compile(SCALE)
    cupy.cuda.runtime.failing = doubles.CUDARuntimeError("cudaErrorIllegalAddress")
    with pytest.raises(RuntimeError, match="cuda:0: 'scale' failed: cudaErrorIllegalAddress"):
        launch(1, engine.allocate(4), engine.allocate(4), 1, 1.0, 0)


def test_a_failed_read_blames_earlier_work(
    engine: Any, cupy: Any, doubles: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error found by a copy to the host has the text of a synchronisation."""

    def fails(self: Any) -> None:
        cupy.cuda.runtime.failing = doubles.CUDARuntimeError("cudaErrorIllegalAddress")
        raise cupy.cuda.runtime.failing

    monkeypatch.setattr(doubles.Stream, "synchronize", fails)
    with pytest.raises(RuntimeError, match="an earlier operation failed"):
        engine.read(engine.allocate(4), 0, 4)


def test_several_devices_are_entered(doubles: ModuleType) -> None:
    """With several devices every call sets the thread's current device."""
    cupy = doubles.double(devices=2)
    backend = CudaBackend(cupy)
    backend.engine(1).allocate(4)
    assert cupy.cuda.runtime.device == 1
    backend.engine(0).allocate(4)
    assert cupy.cuda.runtime.device == 0


def test_a_transfer_is_ordered_on_both_streams(doubles: ModuleType) -> None:
    """The copy waits for earlier work of the source's stream, and later work of the source waits for the copy."""
    cupy = doubles.double(devices=2)
    backend = CudaBackend(cupy)
    data = memoryview(np.arange(6, dtype=np.float32)).cast("B")
    array = backend.from_host(0, data, (2, 3), float32)
    moved = backend.transfer(array, 0, 1)
    assert bytes(backend.to_host(moved)) == bytes(data)
    log = cupy.cuda.get_current_stream().log
    assert [entry[0] if isinstance(entry, tuple) else entry for entry in log[:5]][-4:] == [
        "record", "wait", "record", "wait",
    ]  # fmt: skip


def test_streams_and_events_are_those_of_the_contract(engine: Any, cupy: Any) -> None:
    """A stream is current in its block, records, waits, and can be queried; events measure milliseconds."""
    stream = CudaStream(engine, cupy.cuda.Stream())
    other = CudaStream(engine, cupy.cuda.Stream())
    with stream as entered:
        assert entered is stream
        assert engine.stream() is stream.cupy
        start = stream.record()
    assert engine.stream() is not stream.cupy
    stream.wait_stream(other)
    assert stream.cupy.log[-1][0] == "wait"
    assert not start.query()
    stream.synchronize()
    assert start.query()
    assert stream.query()
    start.wait()
    assert engine.stream().log[-1][0] == "wait"
    start.synchronize()
    assert start.elapsed_time(stream.record()) == 1.5
    assert stream == CudaStream(engine, stream.cupy)
    assert stream != other
    assert hash(stream) == hash(CudaStream(engine, stream.cupy))
