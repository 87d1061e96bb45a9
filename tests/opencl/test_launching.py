"""Launches: arguments of every type, any number of work-items, and errors with the kernel's name."""

import struct
from typing import Any

import candelabra as cd
import pyopencl as cl
import pytest
from candelabra.errors import OutOfMemoryError
from candelabra_clike import Engine, Source
from candelabra_clike.source import number, reads, writes
from candelabra_opencl import launching
from candelabra_opencl.backend import OpenCLBackend
from candelabra_opencl.engine import OpenCLEngine

VALUES = {"i32": -(2**31), "u32": 2**32 - 1, "i64": -(2**63), "u64": 2**64 - 1, "f32": 0.5, "f64": 0.1}
FORMATS = {"i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f32": "f", "f64": "d"}


@pytest.fixture(params=[True, False], ids=["long", "wide"])
def codes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Select each form of 64-bit integers: C's `long`, and the form for a `long` of 32 bits."""
    if not request.param:
        monkeypatch.setattr(launching, "CODES", FORMATS)
        launching.factory.cache_clear()
        monkeypatch.setattr(launching, "factory", launching.factory.__wrapped__)


@pytest.mark.usefixtures("codes")
@pytest.mark.parametrize("type", VALUES)
def test_numbers_are_passed_exactly(engine: Engine, type: str) -> None:
    """Every type of number keeps its extremes, between buffers and other numbers."""
    own = OpenCLBackend("own").engine(0)
    parameters = (number("before", "i32"), writes("out", type), number("value", type), reads("a", "i32"), number("n"))
    launch = own.compile(Source(f"put_{type}", parameters, "out[n] = a[0] == before ? value : 0;"))
    size = struct.calcsize(FORMATS[type])
    out, a = own.allocate(2 * size), own.allocate(4)
    own.write(a, 0, memoryview(struct.pack("i", -7)))
    launch(1, -7, out, VALUES[type], a, 1)
    (found,) = struct.unpack(FORMATS[type], own.read(out, size, size))
    assert found == VALUES[type]


@pytest.mark.parametrize("serial", [True, False])
@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 1000])
def test_exactly_the_requested_number_of_work_items_runs(serial: bool, count: int) -> None:
    """The number is exact whatever groups the engine forms; zero is not an error."""
    engine = engines(serial)
    launch = engine.compile(Source("mark", (writes("out", "u8"),), "out[GLOBAL_ID] += 1;"))
    out = engine.allocate(1024)
    engine.write(out, 0, memoryview(bytes(1024)))
    launch(count, out)
    assert bytes(engine.read(out, 0, 1024)) == b"\1" * count + bytes(1024 - count)


_ENGINES: dict[bool, OpenCLEngine] = {}


def engines(serial: bool) -> OpenCLEngine:
    """Return an engine for each form of kernels."""
    if serial not in _ENGINES:
        _ENGINES[serial] = OpenCLBackend(f"serial_{serial}".lower(), serial=serial).engine(0)
    return _ENGINES[serial]


@pytest.mark.parametrize("groups", [5, (5,), (5, 3), (5, 3, 2), (5, 0), 0])
def test_groups_along_several_dims(engine: Engine, groups: Any) -> None:
    """A source with a group is launched by the number of groups along up to three dims."""
    body = (
        "const u32 group = GROUP_ID + 5u * (GROUP_ID_1 + 3u * GROUP_ID_2);\n"
        "out[group * 4u + LOCAL_ID] = (u8)(1u + LOCAL_ID);"
    )
    launch = engine.compile(Source("grouped", (writes("out", "u8"),), body, group=4))
    out = engine.allocate(128)
    engine.write(out, 0, memoryview(bytes(128)))
    launch(groups, out)
    dims = groups if isinstance(groups, tuple) else (groups,)
    total = 1
    for dim in dims:
        total *= dim
    assert bytes(engine.read(out, 0, 128)) == bytes([1, 2, 3, 4]) * total + bytes(128 - 4 * total)


def test_equal_sources_are_one_launch(engine: Engine) -> None:
    """A kernel is compiled once on each device, also if several equal sources describe it."""
    first, second = (Source("same", (writes("out", "i32"),), "out[0] = 1;") for _ in range(2))
    assert engine.compile(first) is engine.compile(second)


def test_a_launch_that_is_refused_names_the_kernel(engine: Engine) -> None:
    """A work-group that the device does not support is an error of the call."""
    launch = engine.compile(Source("tuned", (writes("out", "i32"),), "out[0] = 1;", group=4))
    with pytest.raises(RuntimeError, match=r"opencl:0: 'tuned' could not be launched: .*INVALID_WORK"):
        launch((1, 1, 1, 1, 1), engine.allocate(4))


@pytest.mark.parametrize("times", [1, 2])
def test_a_launch_that_runs_out_of_memory_is_tried_again(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """The pool's free blocks are released, and the launch is repeated, before the typed error is raised."""
    left = [times]
    real = launching.ENQUEUE

    def enqueue(*arguments: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise cl.MemoryError("clEnqueueNDRangeKernel failed: MEM_OBJECT_ALLOCATION_FAILURE")
        return real(*arguments)

    monkeypatch.setattr(launching, "ENQUEUE", enqueue)
    engine = OpenCLBackend("full").engine(0)
    engine.allocate(100)
    launch = engine.compile(Source("filling", (writes("out", "u8"), number("value")), "out[0] = (u8)value;"))
    out = engine.allocate(1)
    if times == 1:
        launch(1, out, 7)
        assert bytes(engine.read(out, 0, 1)) == b"\7"
    else:
        with pytest.raises(OutOfMemoryError, match=r"full:0: 'filling' could not be launched: .*ALLOCATION_FAILURE"):
            launch(1, out, 7)
    assert engine.memory.statistics(False)["held"] == 0


class _Failing:
    """An event of failed work."""

    command_execution_status = -5

    def wait(self) -> None:
        raise cl.RuntimeError("clWaitForEvents failed: OUT_OF_RESOURCES")


def test_blocking_tells_which_kernel_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With CANDELABRA_BLOCKING=1 every launch is synchronous, so that the error names the kernel."""
    monkeypatch.setenv("CANDELABRA_BLOCKING", "1")
    engine = OpenCLBackend("blocking").engine(0)
    launch = engine.compile(Source("fine", (writes("out", "i32"),), "out[0] = 3;"))
    out = engine.allocate(4)
    launch(1, out)
    assert bytes(engine.read(out, 0, 4)) == b"\3\0\0\0"
    engine.synchronize()
    assert not engine.streams.single
    monkeypatch.setattr(launching, "ENQUEUE", lambda *_: _Failing())
    with pytest.raises(RuntimeError, match=r"blocking:0: 'fine' failed: .*OUT_OF_RESOURCES"):
        launch(1, out)


def test_late_errors_name_the_device_and_the_way_to_the_operator(engine: OpenCLEngine) -> None:
    """An error at a synchronisation cannot be attributed to a kernel, so it names the variable to set."""
    with pytest.raises(
        RuntimeError, match=r"opencl:0: an earlier operation failed \(set the environment variable"
    ) as e:
        engine.streams.wait_and_check(_Failing().wait)
    assert "OUT_OF_RESOURCES" in str(e.value)


def test_devices_are_named_by_their_engines(engine: Engine, lanes: cd.device) -> None:
    """Errors name their device as programs do."""
    assert repr(engine) == "opencl:0"
    assert str(lanes) == "lanes:0"
