"""Streams of a fake device: work is put off as long as nobody waits for it.

Work on one stream runs in the order in which it was given, and only when something waits for that stream: its own
``synchronize``, an event recorded on it, the device's ``synchronize``, or a copy to the host made while it is current.
Nothing orders two streams but an event: whoever forgets to wait reads memory that has not been written yet. As in
PyTorch every thread has a current stream per device, at first the device's default stream, and the default stream does
not wait for others nor others for it. Nothing depends on timing: the same program is put off in the same way each time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

DEPTH: Final = 1024
"""How much work may wait on a stream; as on real devices, giving it more first waits for the oldest."""


class Work:
    """Something to run, the operator that it is for, and what has to stay alive until then."""

    __slots__ = ("keep", "operator", "run")

    def __init__(self, operator: str, run: Callable[[], None], keep: object) -> None:
        self.operator: Final = operator
        self.run: Final = run
        self.keep: Final = keep


class Event:
    """A place in a stream's work: done when all that was given to the stream before it is."""

    def __init__(self, stream: Stream, ticket: int) -> None:
        self.stream: Final = stream
        self.ticket: Final = ticket

    def query(self) -> bool:
        """Whether the work before it is done. Never waits."""
        return self.stream.finished >= self.ticket

    def wait(self, stream: Stream | None = None) -> None:
        """Let ``stream`` (without one: the thread's current) go on only when this event is done."""
        (self.stream.schedule.current(self.stream.index) if stream is None else stream).wait_event(self)

    def synchronize(self) -> None:
        """Wait for the work before it; raises what went wrong in that."""
        self.stream.schedule.run(self.stream, self.ticket)
        self.stream.schedule.report([self.stream])


class Stream:
    """A queue of work on one device; as a context manager the current one of the thread."""

    def __init__(self, schedule: Schedule, index: int) -> None:
        self.schedule: Final = schedule
        self.index: Final = index
        self.waiting: Final[deque[Work | Event]] = deque()
        self.submitted = self.finished = 0
        self.errors: Final[list[Exception]] = []
        self.number = schedule.opened(self)

    def put(self, work: Work | Event) -> None:
        """Give it work, or an event to wait for."""
        with self.schedule.lock:
            self.waiting.append(work)
            self.submitted += 1
            self.schedule.busy[self] = None
            if len(self.waiting) > DEPTH:
                self.schedule.run(self, self.finished + 1)

    def query(self) -> bool:
        """Whether all its work is done. Never waits."""
        return self.finished == self.submitted

    def record(self) -> Event:
        """An event that is done when all work given so far is."""
        return Event(self, self.submitted)

    def record_event(self) -> Event:
        """PyTorch's name of :meth:`record`."""
        return self.record()

    def wait_event(self, event: Event) -> None:
        """Let what is given from here on run only after ``event``, which may be of another device. Never waits."""
        self.put(event)

    def wait_stream(self, stream: Stream) -> None:
        """As :meth:`wait_event`, for all work that ``stream`` has now."""
        self.wait_event(stream.record())

    def synchronize(self) -> None:
        """Wait for all its work; raises what went wrong in it."""
        self.record().synchronize()

    def __enter__(self) -> Stream:
        self.schedule.entered(self.index).append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.schedule.entered(self.index).pop()


class _Entered(threading.local):
    """Per device the streams whose ``with`` blocks this thread is in."""

    def __init__(self) -> None:
        self.stacks: dict[int, list[Stream]] = {}


class Schedule:
    """All streams of a device type, behind one lock."""

    def __init__(self, devices: int) -> None:
        self.lock: Final = threading.RLock()
        self.busy: Final[dict[Stream, None]] = {}
        """Streams with work to do or errors to tell: they live until that is over, whoever forgets them."""
        self._entered: Final = _Entered()
        self._count = 0
        self.defaults: Final = [Stream(self, index) for index in range(devices)]

    def opened(self, stream: Stream) -> int:
        """The number of a new stream."""
        with self.lock:
            self._count += 1
            return self._count

    def entered(self, index: int) -> list[Stream]:
        """The streams of one device whose blocks this thread is in, the innermost last."""
        return self._entered.stacks.setdefault(index, [])

    def current(self, index: int) -> Stream:
        """The thread's current stream on a device."""
        stack = self._entered.stacks.get(index)
        return stack[-1] if stack else self.defaults[index]

    def run(self, stream: Stream, ticket: int) -> None:
        """Run a stream's work until so much is done, and of other streams what that waits for; no more.

        Without recursion: two streams may have waited for each other any number of times.
        """
        with self.lock:
            goals = [(stream, ticket)]
            while goals:
                stream, ticket = goals[-1]
                if stream.finished >= ticket:
                    goals.pop()
                    continue
                work = stream.waiting[0]
                if isinstance(work, Event) and not work.query():
                    goals.append((work.stream, work.ticket))
                    continue
                self._do(stream)
                if not stream.waiting and not stream.errors:
                    self.busy.pop(stream, None)

    @staticmethod
    def _do(stream: Stream) -> None:
        work = stream.waiting.popleft()
        try:
            if isinstance(work, Work):
                work.run()
        except Exception as error:
            stream.errors.append(error)
        finally:
            stream.finished += 1

    def finish(self, index: int) -> list[Stream]:
        """Run all work of a device; returns its streams that had some.

        The newest stream comes first: what forgot to wait for an older one must not be right by luck.
        """
        with self.lock:
            found = sorted((s for s in self.busy if s.index == index), key=lambda s: -s.number)
            for stream in found:
                self.run(stream, stream.submitted)
            return found

    def report(self, streams: list[Stream]) -> None:
        """Raise the first error of these streams, once; the others are mentioned in a note."""
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
