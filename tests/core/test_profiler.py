"""The profiler: what it counts, its table, its schedule and its trace. No test looks at times."""

from __future__ import annotations

import json
from pathlib import Path

import candelabra as cd
import pytest
from candelabra.profiler import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)


def test_operators_are_counted() -> None:
    """Forward and backward pass; composites count as one call; nothing is counted outside."""
    x = cd.ones(3, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as found:
        for _ in range(2):
            (x.exp() * 2).sum().backward()
    x.exp()
    counts = {event.key: event.count for event in found.key_averages()}
    assert counts["exp"] == 2
    assert counts["sum"] == 2
    assert counts["mul"] >= 2
    assert [event.name for event in found.events()][:2] == ["exp", "mul"]
    assert found.events()[0].input_shapes == [[3]]


def test_blocks_contain_their_operators() -> None:
    """The time of a block is that of its operators and its own; outside of a profile it has no effect."""
    with record_function("nothing"):
        pass
    with profile() as found, record_function("block"):
        cd.ones(3).exp()

    @record_function("decorated")
    def f() -> cd.Tensor:
        return cd.ones(3).sin()

    with profile() as decorated:
        f()
    assert [event.name for event in decorated.events()][-1] == "decorated"
    events = {event.name: event for event in found.events()}
    block = events["block"]
    assert block.cpu_time_total >= block.inner >= events["exp"].cpu_time_total
    assert block.self_cpu_time_total == block.cpu_time_total - block.inner
    assert "FunctionEvent block calls=1" in repr(block)


def test_table_is_sorted_and_limited() -> None:
    """By any attribute of an event; the names of PyTorch's devices mean the device's time."""
    with profile(record_shapes=True) as found:
        for size in (1, 2, 2):
            cd.ones(size).exp()
    averages = found.key_averages(group_by_input_shape=True)
    assert sorted((event.input_shapes, event.count) for event in averages if event.name == "exp") == [
        ([[1]], 1), ([[2]], 2),
    ]  # fmt: skip
    lines = averages.table(sort_by="count", row_limit=1).splitlines()
    assert lines[0].split()[:2] == ["Name", "Self"]
    assert len(lines) == 4
    assert "exp" in str(averages)
    assert averages.table(sort_by="cuda_time_total")
    assert averages.total_average().count == sum(event.count for event in averages)
    with pytest.raises(ValueError, match="cannot sort by 'beauty': it is no attribute of an event"):
        averages.table(sort_by="beauty")


@pytest.mark.usefixtures("lantern")
def test_time_of_a_device_is_separate_from_the_hosts() -> None:
    """`device_time_total` is that of calls on other devices; the profiler waits for asynchronous ones."""
    x, y = cd.ones(2, device="lantern"), cd.ones(2)
    with profile() as found:
        x.exp()
        y.sin()
    times = {event.name: event for event in found.key_averages()}
    assert times["exp"].device_time_total == times["exp"].cpu_time_total
    assert times["sin"].device_time_total == 0


def test_schedule_chooses_steps() -> None:
    """Cycles of waiting, warming up and recording steps, after which the trace is ready."""
    action = schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    assert [action(step).name for step in range(7)] == [
        "NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE", "NONE",
    ]  # fmt: skip
    ready: list[int] = []
    with profile(schedule=action, on_trace_ready=lambda p: ready.append(len(p.events()))) as found:
        for _ in range(7):
            cd.ones(1).exp()
            found.step()
    assert len(ready) == 1
    assert {event.name: event.count for event in found.key_averages()}["exp"] == 2
    with pytest.raises(ValueError, match="at least one active step"):
        schedule(wait=0, warmup=0, active=0)
    assert ProfilerAction.NONE is schedule(wait=1, warmup=0, active=1)(0)
    assert ProfilerActivity.CPU in supported_activities()


def test_trace_is_a_file_of_chrome(tmp_path: Path) -> None:
    """Each call is a complete event; `tensorboard_trace_handler` writes one file per cycle."""
    folder = tmp_path / "traces"
    with profile(on_trace_ready=tensorboard_trace_handler(str(folder), "worker")) as found:
        found.step()
        cd.ones(1).exp()
    (file,) = folder.iterdir()
    assert file.name.startswith("worker.")
    events = json.loads(file.read_text())["traceEvents"]
    assert {"exp"} <= {event["name"] for event in events}
    assert all(event["ph"] == "X" for event in events)
    assert cd.autograd.profiler.profile is profile
    found.export_chrome_trace(tmp_path / "new" / "trace.json")
    assert (tmp_path / "new" / "trace.json").exists()


def test_failing_operators_are_recorded_and_raise() -> None:
    """The error passes, and the profile ends."""
    with profile() as found, pytest.raises(RuntimeError, match=r"size"):
        cd.ones(2) @ cd.ones(3)
    assert [event.name for event in found.events()][-1] in ("matmul", "dot")
