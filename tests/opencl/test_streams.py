"""Streams of a device: order within a stream and by events, and the lifetime of memory."""

import gc
import threading

import candelabra as cd
import pytest
from candelabra.library import open_device
from candelabra_clike import Engine
from candelabra_opencl.backend import OpenCLBackend
from candelabra_opencl.engine import OpenCLEngine
from candelabra_opencl.streams import OpenCLEvent, OpenCLStream


@pytest.fixture
def separate_engine() -> OpenCLEngine:
    """Return a separate engine on which no other test creates streams."""
    return OpenCLBackend("separate_engine").engine(0)


@pytest.fixture
def backend(device: cd.device) -> OpenCLBackend:
    """Return the backend of the device."""
    found = open_device(device).backend
    assert isinstance(found, OpenCLBackend)
    return found


def test_a_stream_is_current_inside_its_block(backend: OpenCLBackend) -> None:
    """Blocks nest, other threads are not affected, and outside all blocks the default stream is current."""
    default = backend.default_stream(0)
    first, second = backend.stream(0), backend.stream(0)
    seen: list[OpenCLStream] = []
    assert backend.current_stream(0) is default
    with first:
        with second:
            assert backend.current_stream(0) is second
        assert backend.current_stream(0) is first
        thread = threading.Thread(target=lambda: seen.append(backend.current_stream(0)))
        thread.start()
        thread.join()
    assert backend.current_stream(0) is default
    assert seen == [default]


def test_work_of_a_stream_is_done_in_order(device: cd.device, backend: OpenCLBackend) -> None:
    """After a synchronisation the results of a stream are visible to the host and to other streams."""
    stream = backend.stream(0)
    x = cd.arange(5000, dtype=cd.float32).to(device)
    backend.synchronize(0)
    with stream:
        y = (x + x).mul_(2.0) + 1.0
    stream.synchronize()
    assert stream.query()
    assert any(backend.default_stream(0).query() for _ in range(10_000))
    assert (y + 0.0).cpu().tolist() == [4.0 * i + 1 for i in range(5000)]


def test_events_order_streams(device: cd.device, backend: OpenCLBackend) -> None:
    """A stream that waits for another stream, or for its event, sees its results."""
    first, second = backend.stream(0), backend.stream(0)
    for wait in ("event", "stream", "current"):
        x = cd.ones(3000).to(device)
        backend.synchronize(0)
        with first:
            y = x + 1.0
            event = first.record_event()
        with second:
            if wait == "event":
                second.wait_event(event)
            elif wait == "stream":
                second.wait_stream(first)
            else:
                event.wait()
            z = y * 3.0
        second.synchronize()
        assert event.query()
        assert z.cpu().unique().tolist() == [6.0]
    event.synchronize()


def test_tensors_from_the_host_are_visible_to_every_stream(device: cd.device, backend: OpenCLBackend) -> None:
    """A tensor created outside a stream's block can be used inside it without a synchronisation."""
    stream = backend.stream(0)
    for turn in range(20):
        x = cd.tensor([float(turn)] * 5000).to(device)
        with stream:
            y = x + 1.0
        stream.synchronize()
        assert y.cpu().tolist() == [turn + 1.0] * 5000


def test_an_event_of_another_device_is_waited_for(separate_engine: OpenCLEngine, backend: OpenCLBackend) -> None:
    """Events cannot be shared by contexts of OpenCL, so the host waits."""
    event = separate_engine.streams.new().record()
    backend.stream(0).wait_event(event)
    assert event.query()


def test_times_between_events(device: cd.device, backend: OpenCLBackend) -> None:
    """Events of a stream measure milliseconds; the default stream does not measure times."""
    stream = backend.stream(0)
    x = cd.ones(200_000).to(device)
    backend.synchronize(0)
    with stream:
        start = stream.record()
        for _ in range(20):
            x = x * 1.0
        end = stream.record()
    end.synchronize()
    start.synchronize()
    assert 0 < start.elapsed_time(end) < 60_000
    with pytest.raises(RuntimeError, match="elapsed_time: the default stream records no times"):
        backend.default_stream(0).record().elapsed_time(end)


class _Undone:
    """A marker of unfinished work."""

    command_execution_status = 1


def test_times_need_events_that_are_done(backend: OpenCLBackend) -> None:
    """An event that is not done has no time."""
    stream = backend.stream(0)
    done = stream.record()
    done.synchronize()
    with pytest.raises(RuntimeError, match=r"an event is not complete, call its synchronize\(\) first"):
        done.elapsed_time(OpenCLEvent(stream, _Undone()))


def test_memory_is_kept_until_every_stream_is_done_with_it(separate_engine: OpenCLEngine) -> None:
    """A freed buffer is reused by another stream only after the work that reads it is done."""
    stream = separate_engine.streams.new()
    with stream:
        source, destination = separate_engine.allocate(4096), separate_engine.allocate(4096)
        separate_engine.copy(destination, 0, source, 0, 4096)
        separate_engine.write(source, 0, memoryview(bytes(16)))
    assert separate_engine.memory.statistics(False)["blocks"] >= 2
    del source, destination
    stream.synchronize()
    assert separate_engine.memory.statistics(False)["blocks"] == 0


def test_the_last_stream_leaves_no_overhead(separate_engine: OpenCLEngine) -> None:
    """Streams cost a program nothing after they are deleted."""
    assert separate_engine.streams.single
    stream = separate_engine.streams.new()
    with stream:
        kept = separate_engine.allocate(64)
        separate_engine.copy(separate_engine.allocate(64), 0, kept, 0, 64)
    assert not separate_engine.streams.single
    separate_engine.synchronize()
    assert not separate_engine.streams.single
    del stream
    gc.collect()
    separate_engine.synchronize()
    assert separate_engine.streams.single
    assert separate_engine.memory.statistics(False)["blocks"] == 1


def test_a_forgotten_stream_does_its_work(separate_engine: OpenCLEngine) -> None:
    """The memory used by a stream's work outlives the stream."""
    kept, result = separate_engine.allocate(1 << 20), separate_engine.allocate(1 << 20)
    separate_engine.write(kept, 0, memoryview(b"\7" * (1 << 20)))
    separate_engine.synchronize()
    stream = separate_engine.streams.new()
    with stream:
        for _ in range(10):
            separate_engine.copy(result, 0, kept, 0, 1 << 20)
    del stream, kept
    gc.collect()
    separate_engine.synchronize()
    assert separate_engine.streams.single
    assert bytes(separate_engine.read(result, (1 << 20) - 2, 2)) == b"\7\7"


def test_synchronisation_raises_errors_of_kernels(device: cd.device, engine: Engine) -> None:
    """An index out of bounds is raised by the synchronisation of the stream, the event or the device."""
    table, places = cd.ones(4).to(device), cd.tensor([0, 9]).to(device)
    backend = open_device(device).backend
    assert isinstance(backend, OpenCLBackend)
    stream = backend.stream(0)
    engine.synchronize()
    waits = (stream.synchronize, lambda: stream.record().synchronize(), lambda: backend.synchronize(0))
    for wait in waits:
        with stream:
            table.index_select(0, places)
            with pytest.raises(IndexError, match="index"):
                wait()
    backend.synchronize(0)
