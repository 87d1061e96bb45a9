"""Streams: in-order queues of one device. Each thread has a current stream, as in PyTorch.

While a device has only its default stream, freed memory can be reused immediately: the queue runs the next use of the
memory after the last one. Several streams are not ordered. From the second stream on, the memory that a stream's work
uses is kept until that work is complete. When only the default stream is left, memory is reused immediately again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

import pyopencl as cl
from pyopencl import _cl


class OpenCLEvent:
    """A point in a stream, which is complete when all work queued before it is."""

    def __init__(self, stream: OpenCLStream, marker: Any) -> None:
        self.stream: Final = stream
        self.marker: Final = marker

    def query(self) -> bool:
        """Return whether the work before the event is complete. Never waits."""
        return bool(self.marker.command_execution_status <= 0)

    def wait(self, stream: OpenCLStream | None = None) -> None:
        """Make ``stream`` (default: the current one) wait for this event."""
        (self.stream.streams.current() if stream is None else stream).wait_event(self)

    def synchronize(self) -> None:
        """Wait for the work before the event, and raise its errors."""
        self.stream.streams.wait_and_check(self.marker.wait)

    def elapsed_time(self, end: OpenCLEvent) -> float:
        """Return the milliseconds between this event and a later one. Both must be complete, and not on the default
        stream.

        Raises ``RuntimeError`` otherwise.
        """
        for event in (self, end):
            if event.stream.number == 0:
                raise RuntimeError(
                    "elapsed_time: the default stream records no times, record the event on another stream"
                )
            if not event.query():
                raise RuntimeError("elapsed_time: an event is not complete, call its synchronize() first")
        return float(end.marker.profile.end - self.marker.profile.end) * 1e-6


class OpenCLStream:
    """A queue of work on one device. As a context manager, it is the current stream of the thread."""

    def __init__(self, streams: Streams, queue: Any, number: int) -> None:
        self.streams: Final = streams
        self.queue: Final = queue
        self.number: Final = number
        self.in_use: Final[deque[tuple[Any, Any]]] = deque()
        """Events of work that may be incomplete, with the memory that it uses."""

    def keep(self, event: Any, used: Any) -> None:
        """Keep memory until an event is complete."""
        in_use = self.in_use
        in_use.append((event, used))
        self.release_completed()

    def release_completed(self) -> None:
        """Release the memory of completed work."""
        in_use = self.in_use
        try:
            while in_use and in_use[0][0].command_execution_status <= 0:
                in_use.popleft()
        except IndexError:  # another thread has emptied the queue
            return

    def query(self) -> bool:
        """Return whether all work is complete. Never waits. May return False shortly after completion."""
        if self.streams.single:
            return self.record().query()
        try:
            return bool(self.in_use[-1][0].command_execution_status <= 0)
        except IndexError:
            return True

    def record(self) -> OpenCLEvent:
        """Return an event that is complete when all work queued so far is."""
        marker = _cl._enqueue_marker_with_wait_list(self.queue, None)
        self.queue.flush()  # another queue may wait for it
        return OpenCLEvent(self, marker)

    def record_event(self) -> OpenCLEvent:
        """The same as :meth:`record`, under PyTorch's name."""
        return self.record()

    def wait_event(self, event: OpenCLEvent) -> None:
        """Make all work queued from now on wait for ``event``. The host waits only for an event of another device."""
        if event.stream.streams is not self.streams:
            event.synchronize()  # an event belongs to one OpenCL context
            return
        _cl._enqueue_barrier_with_wait_list(self.queue, [event.marker])

    def wait_stream(self, stream: OpenCLStream) -> None:
        """Make all work queued from now on wait for all work that ``stream`` has now."""
        self.wait_event(stream.record())

    def synchronize(self) -> None:
        """Wait for all work of the stream, and raise its errors."""
        self.streams.wait_and_check(self.queue.finish)
        self.release_completed()

    def __enter__(self) -> OpenCLStream:
        self.streams.thread.stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.streams.thread.stack.pop()

    def __del__(self) -> None:
        if self.in_use:
            self.streams.orphans.append(self.in_use)


class _StreamStack(threading.local):
    """The streams whose ``with`` blocks this thread is in, the innermost one last."""

    def __init__(self) -> None:
        self.stack: list[OpenCLStream] = []


class Streams:
    """All streams of one device. ``check`` is called after each wait; it raises the errors that kernels have reported.

    With ``blocking``, every launch is waited for; the fast path for a single stream is then not used.
    """

    def __init__(self, device: str, context: Any, check: Callable[[], None], blocking: bool) -> None:
        self.device: Final = device
        self.single = not blocking
        """Whether there is only the default stream, so that memory need not be kept."""
        self._blocking: Final = blocking
        self.thread: Final = _StreamStack()
        self.orphans: Final[deque[deque[tuple[Any, Any]]]] = deque()
        """The memory used by the work of deleted streams."""
        self._context: Final = context
        self._check: Final = check
        self._lock: Final = threading.Lock()
        self._others: Final[WeakSet[OpenCLStream]] = WeakSet()
        self._count = 0
        self.default: Final = OpenCLStream(self, cl.CommandQueue(context), 0)

    def current(self) -> OpenCLStream:
        """Return the current stream of the thread."""
        stack = self.thread.stack
        return stack[-1] if stack else self.default

    def new(self) -> OpenCLStream:
        """Create a stream."""
        with self._lock:
            self._count += 1
            queue = cl.CommandQueue(self._context, properties=cl.command_queue_properties.PROFILING_ENABLE)
            stream = OpenCLStream(self, queue, self._count)
            self._others.add(stream)
            if self.single:
                self.single = False
                self.default.queue.finish()  # its work may use memory that has been freed
        return stream

    def queues(self) -> list[Any]:
        """Return the queues of all streams."""
        return [stream.queue for stream in (self.default, *self._others)]

    def finish(self) -> None:
        """Wait for all streams, and raise errors of the driver."""
        self.wait_for(self.default.queue.finish)
        if self.single:
            return
        with self._lock:
            others = list(self._others)
        for stream in others:
            self.wait_for(stream.queue.finish)
        self._release_completed()

    def _release_completed(self) -> None:
        """Release the memory of completed work. Return to the single-stream mode if there is no other stream."""
        with self._lock:
            for _ in range(len(self.orphans)):
                in_use = self.orphans.popleft()
                for event, _used in in_use:
                    event.wait()
            for stream in (self.default, *self._others):
                stream.release_completed()
            if not self._others and not self.orphans and not self.default.in_use:
                self.single = not self._blocking

    def wait_and_check(self, wait: Callable[[], Any]) -> None:
        """Wait, then raise errors."""
        self.wait_for(wait)
        self._check()

    def wait_for(self, wait: Callable[[], Any]) -> None:
        """Wait. An error of the driver is extended by the name of the device and advice."""
        try:
            wait()
        except cl.Error as error:
            raise RuntimeError(
                f"{self.device}: an earlier operation failed (set the environment variable CANDELABRA_BLOCKING=1 to "
                f"see which one): {error}"
            ) from error
