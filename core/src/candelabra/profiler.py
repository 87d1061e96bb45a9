"""The time of each operator, as ``torch.profiler``: a functionality layer measures the calls of one thread.

The time of an operator is what passes until its result exists: on a device that computes asynchronously the profiler
waits for each call. So the sum is the time of the work, and longer than that of a program that overlaps it. Operators
in the body of another count for that one. The backward pass is measured as far as it runs in the same thread.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from enum import Enum

from candelabra._annotations import Any, Final
from candelabra._device import instance_of_key
from candelabra._dispatch.layers import Layer
from candelabra._tensor import Tensor

_active: Final[list[profile]] = []
"""The profiles that are recording, innermost last."""


class ProfilerActivity(Enum):
    """What PyTorch's programs ask to be recorded. Operators on every device are recorded for any choice."""

    CPU = 0
    CUDA = 1
    XPU = 2
    MTIA = 3


class ProfilerAction(Enum):
    """What a schedule asks for in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """Return all activities."""
    return set(ProfilerActivity)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return a function from the number of a step to the action in it.

    After ``skip_first`` steps, cycles of ``wait`` steps without effect, ``warmup`` and ``active`` recorded steps
    follow: ``repeat`` of them, or without end for 0. Raises ``ValueError`` for a negative number and ``active < 1``.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ValueError("schedule() takes numbers of steps that are not negative, and at least one active step")
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        number, position = divmod(step - skip_first, cycle)
        if step < skip_first or (repeat and number >= repeat) or position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if position == cycle - 1 else ProfilerAction.RECORD

    return action


class FunctionEvent:
    """One call of an operator, or one block of :class:`record_function`. Times are in microseconds."""

    def __init__(self, name: str, start: float, shapes: list[list[int]], host: bool) -> None:
        self.name = self.key = name
        self.start = start
        self.input_shapes = shapes
        self.on_host = host
        self.count = 1
        self.cpu_time_total = 0.0
        self.inner = 0.0
        """The time of the events inside this one."""

    @property
    def self_cpu_time_total(self) -> float:
        """The time without that of the events inside."""
        return self.cpu_time_total - self.inner

    @property
    def cpu_time(self) -> float:
        """The time per call."""
        return self.cpu_time_total / self.count

    @property
    def device_time_total(self) -> float:
        """The time of calls that are not on the host."""
        return 0.0 if self.on_host else self.cpu_time_total

    def __repr__(self) -> str:
        return f"<FunctionEvent {self.name} calls={self.count} time={self.cpu_time_total:.1f}us>"


class EventList(list[FunctionEvent]):
    """Events, with a table of them."""

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events."""
        return sum(event.self_cpu_time_total for event in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """Return a table, sorted by an attribute of the events (``"cpu_time_total"``, ``"count"``), largest first.

        Raises ``ValueError`` for an attribute that events do not have. PyTorch's names of devices' times
        (``"cuda_time_total"``) mean ``"device_time_total"``. Further options of PyTorch's are ignored.
        """
        rows = list(self)
        if sort_by is not None:
            key = sort_by if hasattr(FunctionEvent("", 0, [], True), sort_by) else _device_column(sort_by)
            rows.sort(key=lambda event: getattr(event, key), reverse=True)
        whole = self.self_cpu_time_total or 1.0
        lines = [f"{'Name':<40}{'Self %':>10}{'Self':>14}{'Total':>14}{'Average':>14}{'Calls':>10}  Shapes".rstrip()]
        lines.append("-" * len(lines[0]))
        for event in rows[: row_limit if row_limit >= 0 else None]:
            shapes = f"  {event.input_shapes}" if event.input_shapes else ""
            times = (event.self_cpu_time_total, event.cpu_time_total, event.cpu_time)
            lines.append(
                f"{event.name[:39]:<40}{event.self_cpu_time_total / whole:>10.2%}"
                + "".join([f"{t:>12.1f}us" for t in times])
                + f"{event.count:>10}{shapes}"
            )
        lines.append(f"Self time total: {self.self_cpu_time_total / 1000:.3f}ms")
        return "\n".join(lines)

    def total_average(self) -> FunctionEvent:
        """Return the sum of all events."""
        return _sum("Total", self)

    def __str__(self) -> str:
        return self.table()


def _device_column(sort_by: str) -> str:
    prefix, _, rest = sort_by.removeprefix("self_").partition("_")
    if not prefix or rest not in ("time_total", "time"):
        raise ValueError(f"cannot sort by {sort_by!r}: it is no attribute of an event")
    return "device_time_total"


def _sum(name: str, events: Iterable[FunctionEvent], shapes: list[list[int]] | None = None) -> FunctionEvent:
    events = list(events)
    total = FunctionEvent(name, 0.0, shapes or [], all(event.on_host for event in events))
    total.count = sum(event.count for event in events)
    total.cpu_time_total = sum(event.cpu_time_total for event in events)
    total.inner = sum(event.inner for event in events)
    return total


class profile:
    """A context manager that measures the operators of this thread.

    ``schedule`` chooses the steps that are recorded, which :meth:`step` counts; ``on_trace_ready`` is called with the
    profile after each recorded cycle, and at the end without schedule. ``record_shapes`` keeps the shapes of the
    arguments. Further arguments of PyTorch's are accepted and have no effect.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        **options: Any,
    ) -> None:
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.step_num = 0
        self._events: list[FunctionEvent] = []
        self._open: list[FunctionEvent] = []
        self._layer: Layer | None = None

    # -- recording ----------------------------------------------------------------------------------------------------
    def start(self) -> None:
        """Begin; recording begins with the first step that the schedule chooses."""
        self.step_num = 0
        self._follow(self._action())

    def stop(self) -> None:
        """End, and call ``on_trace_ready`` if steps were recorded."""
        recorded = self._layer is not None
        self._follow(ProfilerAction.NONE)
        if recorded and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """Begin the next step of the schedule."""
        ended = self._action()
        self.step_num += 1
        if self.schedule is None:
            return
        if ended is ProfilerAction.RECORD_AND_SAVE:
            self._follow(ProfilerAction.NONE)
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        self._follow(self._action())

    def _action(self) -> ProfilerAction:
        return ProfilerAction.RECORD if self.schedule is None else self.schedule(self.step_num)

    def _follow(self, action: ProfilerAction) -> None:
        recording = action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if recording and self._layer is None:
            self._events, self._open = [], []
            self._layer = Layer("profiler", self._measure)
            self._layer.__enter__()
            _active.append(self)
        elif not recording and self._layer is not None:
            _active.remove(self)
            self._layer.__exit__()
            self._layer.remove()
            self._layer = None

    def _measure(self, op: Any, next: Any, *args: Any) -> Any:
        event = self._begin(op.name, args)
        try:
            out = next(*args)
            event.on_host = _waited(out)
            return out
        finally:
            self._end(event)

    def _begin(self, name: str, args: tuple[Any, ...] = ()) -> FunctionEvent:
        shapes = [list(t.shape) for t in args if isinstance(t, Tensor)] if self.record_shapes else []
        event = FunctionEvent(name, time.perf_counter() * 1e6, shapes, True)
        self._open.append(event)
        return event

    def _end(self, event: FunctionEvent) -> None:
        event.cpu_time_total = time.perf_counter() * 1e6 - event.start
        self._open.remove(event)
        if self._open:
            self._open[-1].inner += event.cpu_time_total
        self._events.append(event)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- results ------------------------------------------------------------------------------------------------------
    def events(self) -> EventList:
        """Return every call, in the order in which they ended."""
        return EventList(self._events)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Return the sums over the calls of each operator, or of each operator and shapes of arguments."""
        groups: dict[tuple[str, str], list[FunctionEvent]] = {}
        for event in self._events:
            shapes = str(event.input_shapes) if group_by_input_shape else ""
            groups.setdefault((event.name, shapes), []).append(event)
        return EventList(
            _sum(name, events, events[0].input_shapes if group_by_input_shape else None)
            for (name, _), events in groups.items()
        )

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the calls as a trace that Chrome (``chrome://tracing``) and Perfetto show. Create its folder."""
        calls = [
            {
                "ph": "X", "cat": "op", "name": event.name, "pid": os.getpid(), "tid": 0, "ts": event.start,
                "dur": event.cpu_time_total, "args": {"Input Dims": event.input_shapes},
            }
            for event in sorted(self._events, key=lambda event: event.start)
        ]  # fmt: skip
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": calls, "displayTimeUnit": "ms"}, file)


def _waited(out: Any) -> bool:
    """Wait for the device of a result, if it is asynchronous, and return whether it is in the host's memory."""
    first = out[0] if isinstance(out, (tuple, list)) and out else out
    if not isinstance(first, Tensor):
        return True
    instance = instance_of_key(first._keys)
    if instance.capabilities.asynchronous:
        instance.backend.synchronize(instance.index)
    return instance.capabilities.host


class record_function(ContextDecorator):
    """A context manager and decorator: in a profile, the block has a row of its own under ``name``."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._begun: list[tuple[profile, FunctionEvent] | None] = []

    def __enter__(self) -> record_function:
        recording = _active[-1] if _active else None
        self._begun.append(None if recording is None else (recording, recording._begin(self.name)))
        return self

    def __exit__(self, *_: object) -> None:
        begun = self._begun.pop()
        if begun is not None:
            recording, event = begun
            recording._end(event)


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return a function for ``on_trace_ready`` that writes a trace into a folder, which is created."""

    def write(finished: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or os.getpid()}.{time.time_ns() // 1_000_000}.pt.trace.json"
        finished.export_chrome_trace(os.path.join(dir_name, name))

    return write


__all__ = [
    "EventList", "FunctionEvent", "profile", "ProfilerAction", "ProfilerActivity", "record_function", "schedule",
    "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
