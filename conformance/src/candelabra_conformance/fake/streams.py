"""Streams of a fake device, which defer work until a caller waits for it.

Work on one stream runs in order, and only when a caller waits for that stream: by its ``synchronize``, by an event
recorded on it, by the device's ``synchronize``, or by a copy to the host while the stream is current. Only events order
work of two streams: a caller that does not wait reads memory that has not been written yet. As in PyTorch every thread
has a current stream per device, initially the device's default stream. The default stream does not wait for other
streams, nor do they wait for it. Nothing depends on timing: the same program defers its work in the same way each time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

DEPTH: Final = 1024
"""The maximum number of work items in a stream. As on real devices, adding another one first waits for the oldest."""


class StreamWork:
    """A function to run, the name of the operator that it computes, and the objects that must live until then."""

    __slots__ = ("keep", "operator", "run")

    def __init__(self, operator: str, run: Callable[[], None], keep: object) -> None:
        self.operator: Final = operator
        self.run: Final = run
        self.keep: Final = keep


class FakeEvent:
    """A position in a stream's work. The event is complete when all work before it is."""

    def __init__(self, stream: Stream, ticket: int) -> None:
        self.stream: Final = stream
        self.ticket: Final = ticket

    def query(self) -> bool:
        """Return whether the work before the event is complete, without waiting."""
        return self.stream.finished >= self.ticket

    def wait(self, stream: Stream | None = None) -> None:
        """Let ``stream``, by default the thread's current stream, continue only when this event is complete."""
        (self.stream.schedule.current(self.stream.index) if stream is None else stream).wait_event(self)

    def synchronize(self) -> None:
        """Wait for the work before the event, and raise its first error."""
        self.stream.schedule.run(self.stream, self.ticket)
        self.stream.schedule.report([self.stream])


class Stream:
    """A queue of work on one device. As a context manager, it is the current stream of the thread."""

    def __init__(self, schedule: StreamSchedule, index: int) -> None:
        self.schedule: Final = schedule
        self.index: Final = index
        self.waiting: Final[deque[StreamWork | FakeEvent]] = deque()
        self.submitted = self.finished = 0
        self.errors: Final[list[Exception]] = []
        self.number = schedule.opened(self)

    def put(self, work: StreamWork | FakeEvent) -> None:
        """Enqueue work, or an event to wait for."""
        with self.schedule.lock:
            self.waiting.append(work)
            self.submitted += 1
            self.schedule.busy[self] = None
            if len(self.waiting) > DEPTH:
                self.schedule.run(self, self.finished + 1)

    def query(self) -> bool:
        """Return whether all work of the stream is complete, without waiting."""
        return self.finished == self.submitted

    def record(self) -> FakeEvent:
        """Return an event that is complete when all work enqueued so far is."""
        return FakeEvent(self, self.submitted)

    def record_event(self) -> FakeEvent:
        """Do the same as :meth:`record`, by PyTorch's name."""
        return self.record()

    def wait_event(self, event: FakeEvent) -> None:
        """Let later work run only after ``event``, which may be of another device. The call itself does not wait."""
        self.put(event)

    def wait_stream(self, stream: Stream) -> None:
        """Let later work run only after all work that ``stream`` has now."""
        self.wait_event(stream.record())

    def synchronize(self) -> None:
        """Wait for all work of the stream, and raise its first error."""
        self.record().synchronize()

    def __enter__(self) -> Stream:
        self.schedule.entered(self.index).append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.schedule.entered(self.index).pop()


class _Entered(threading.local):
    """The streams whose ``with`` blocks this thread is in, by device."""

    def __init__(self) -> None:
        self.stacks: dict[int, list[Stream]] = {}


class StreamSchedule:
    """All streams of a device type, behind one lock."""

    def __init__(self, devices: int) -> None:
        self.lock: Final = threading.RLock()
        self.busy: Final[dict[Stream, None]] = {}
        """The streams with work or unreported errors. They live until both are finished, even without another
        reference."""
        self._entered: Final = _Entered()
        self._count = 0
        self.defaults: Final = [Stream(self, index) for index in range(devices)]

    def opened(self, stream: Stream) -> int:
        """Return the number of a new stream."""
        with self.lock:
            self._count += 1
            return self._count

    def entered(self, index: int) -> list[Stream]:
        """Return the streams of one device whose blocks this thread is in, the innermost last."""
        return self._entered.stacks.setdefault(index, [])

    def current(self, index: int) -> Stream:
        """Return the thread's current stream on a device."""
        stack = self._entered.stacks.get(index)
        return stack[-1] if stack else self.defaults[index]

    def run(self, stream: Stream, ticket: int) -> None:
        """Run a stream's work up to ``ticket``, and only the work of other streams that it waits for.

        The method does not recurse, since two streams may have waited for each other any number of times.
        """
        with self.lock:
            goals = [(stream, ticket)]
            while goals:
                stream, ticket = goals[-1]
                if stream.finished >= ticket:
                    goals.pop()
                    continue
                work = stream.waiting[0]
                if isinstance(work, FakeEvent) and not work.query():
                    goals.append((work.stream, work.ticket))
                    continue
                self._do(stream)
                if not stream.waiting and not stream.errors:
                    self.busy.pop(stream, None)

    @staticmethod
    def _do(stream: Stream) -> None:
        work = stream.waiting.popleft()
        try:
            if isinstance(work, StreamWork):
                work.run()
        except Exception as error:
            stream.errors.append(error)
        finally:
            stream.finished += 1

    def finish(self, index: int) -> list[Stream]:
        """Run all work of a device, and return its streams that had some.

        The newest stream runs first, so that a missing wait for an older stream never gives correct values by accident.
        """
        with self.lock:
            found = sorted((s for s in self.busy if s.index == index), key=lambda s: -s.number)
            for stream in found:
                self.run(stream, stream.submitted)
            return found

    def report(self, streams: list[Stream]) -> None:
        """Raise the first error of these streams, once. A note lists the others."""
        with self.lock:
            errors = []
            for stream in streams:
                errors += stream.errors
                stream.errors.clear()
                if not stream.waiting:
                    self.busy.pop(stream, None)
        if errors:
            for other in errors[1:]:
                errors[0].add_note(f"then {other}")
            raise errors[0]
