"""Streams: in-order queues of one device, of which each thread has a current one, as in PyTorch.

As long as a device has its default stream alone, memory that is freed may be used again at once: the queue does what
uses it next after what used it last. Between several streams nothing is in order, so from the first further stream on
whatever a stream's work touches is kept until that is done. Where the last of them is gone, all is as before.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

import pyopencl as cl
from pyopencl import _cl


class Event:
    """A place in a stream's work: done when all that was given to the stream before it is."""

    def __init__(self, stream: Stream, marker: Any) -> None:
        self.stream: Final = stream
        self.marker: Final = marker

    def query(self) -> bool:
        """Whether the work before it is done. Never waits."""
        return bool(self.marker.command_execution_status <= 0)

    def wait(self, stream: Stream | None = None) -> None:
        """Let ``stream`` (without one: the thread's current) go on only when this event is done."""
        (self.stream.streams.current() if stream is None else stream).wait_event(self)

    def synchronize(self) -> None:
        """Wait for the work before it; raises what went wrong in that."""
        self.stream.streams.waited(self.marker.wait)

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds between this event and a later one; both have to be done. Not on default streams.

        Raises ``RuntimeError`` where the device takes no times or is not that far.
        """
        for event in (self, end):
            if event.stream.number == 0:
                raise RuntimeError("elapsed_time: no times are taken on the default stream, record on one of your own")
            if not event.query():
                raise RuntimeError("elapsed_time: an event is not done yet, synchronize() it first")
        return float(end.marker.profile.end - self.marker.profile.end) * 1e-6


class Stream:
    """A queue of work on one device; as a context manager the current one of the thread."""

    def __init__(self, streams: Streams, queue: Any, number: int) -> None:
        self.streams: Final = streams
        self.queue: Final = queue
        self.number: Final = number
        self.lent: Final[deque[tuple[Any, Any]]] = deque()
        """Events of work that may not be done, and the memory that it uses."""

    def keep(self, event: Any, used: Any) -> None:
        """Keep memory until an event is done."""
        lent = self.lent
        lent.append((event, used))
        self.forget_done()

    def forget_done(self) -> None:
        """Let memory go whose work is done."""
        lent = self.lent
        try:
            while lent and lent[0][0].command_execution_status <= 0:
                lent.popleft()
        except IndexError:  # another thread was quicker
            return

    def query(self) -> bool:
        """Whether all its work is done. Never waits; just after it was done the answer may still be no."""
        if self.streams.single:
            return self.record().query()
        try:
            return bool(self.lent[-1][0].command_execution_status <= 0)
        except IndexError:
            return True

    def record(self) -> Event:
        """An event that is done when all work given so far is."""
        marker = _cl._enqueue_marker_with_wait_list(self.queue, None)
        self.queue.flush()  # another queue may wait for it
        return Event(self, marker)

    def record_event(self) -> Event:
        """PyTorch's name of :meth:`record`."""
        return self.record()

    def wait_event(self, event: Event) -> None:
        """Let what is given from here on run only after ``event``. Never waits; but for one of another device."""
        if event.stream.streams is not self.streams:
            event.synchronize()  # an event belongs to one context of OpenCL
            return
        _cl._enqueue_barrier_with_wait_list(self.queue, [event.marker])

    def wait_stream(self, stream: Stream) -> None:
        """As :meth:`wait_event`, for all work that ``stream`` has now."""
        self.wait_event(stream.record())

    def synchronize(self) -> None:
        """Wait for all its work; raises what went wrong in it."""
        self.streams.waited(self.queue.finish)
        self.forget_done()

    def __enter__(self) -> Stream:
        self.streams.entered.stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.streams.entered.stack.pop()

    def __del__(self) -> None:
        if self.lent:
            self.streams.orphans.append(self.lent)


class _Entered(threading.local):
    """The streams whose ``with`` blocks this thread is in, the innermost last."""

    def __init__(self) -> None:
        self.stack: list[Stream] = []


class Streams:
    """All streams of one device. ``check`` is called after each wait: it raises what kernels found wrong in values.

    ``blocking``: launches are waited for, which they never are on the short path for a single stream.
    """

    def __init__(self, place: str, context: Any, check: Callable[[], None], blocking: bool) -> None:
        self.place: Final = place
        self.single = not blocking
        """Whether the default stream is the only one, and memory needs no keeping."""
        self._blocking: Final = blocking
        self.entered: Final = _Entered()
        self.orphans: Final[deque[deque[tuple[Any, Any]]]] = deque()
        """What work of forgotten streams uses."""
        self._context: Final = context
        self._check: Final = check
        self._lock: Final = threading.Lock()
        self._others: Final[WeakSet[Stream]] = WeakSet()
        self._count = 0
        self.default: Final = Stream(self, cl.CommandQueue(context), 0)

    def current(self) -> Stream:
        """The thread's current stream."""
        stack = self.entered.stack
        return stack[-1] if stack else self.default

    def new(self) -> Stream:
        """A further stream."""
        with self._lock:
            self._count += 1
            queue = cl.CommandQueue(self._context, properties=cl.command_queue_properties.PROFILING_ENABLE)
            made = Stream(self, queue, self._count)
            self._others.add(made)
            if self.single:
                self.single = False
                self.default.queue.finish()  # its work may use memory that is free already
        return made

    def finish(self) -> None:
        """Wait for all streams; raises what the driver says went wrong."""
        self.failing(self.default.queue.finish)
        if self.single:
            return
        with self._lock:
            others = list(self._others)
        for stream in others:
            self.failing(stream.queue.finish)
        self._settle()

    def _settle(self) -> None:
        """Let all memory go whose work is done; back to one stream where there is no other any more."""
        with self._lock:
            for _ in range(len(self.orphans)):
                lent = self.orphans.popleft()
                for event, _used in lent:
                    event.wait()
            for stream in (self.default, *self._others):
                stream.forget_done()
            if not self._others and not self.orphans and not self.default.lent:
                self.single = not self._blocking

    def waited(self, wait: Callable[[], Any]) -> None:
        """Wait, then raise what went wrong."""
        self.failing(wait)
        self._check()

    def failing(self, wait: Callable[[], Any]) -> None:
        """Wait; an error of the driver gets the device's name and what can be done."""
        try:
            wait()
        except cl.Error as error:
            raise RuntimeError(
                f"{self.place}: work queued before failed (CANDELABRA_BLOCKING=1 in the environment says which "
                f"operator): {error}"
            ) from error
