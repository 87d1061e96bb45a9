"""``Event`` of the device modules: a point in the work of a device, to wait for and to measure times between."""

from __future__ import annotations

import time
from collections.abc import Callable

from candelabra._annotations import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from candelabra._device import Instance


class Event:
    """A point in the work of a device, set by :meth:`record`. As ``torch.Event``.

    On a device with streams it is the backend's event. Any other device has done its work when :meth:`record` has
    synchronized it, and the times are the host's. ``enable_timing`` must be set for :meth:`elapsed_time`; ``blocking``
    and ``interprocess`` are accepted for PyTorch's programs and change nothing.
    """

    def __init__(
        self,
        find: Callable[[], Instance],
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        self._find = find
        self._timed = enable_timing
        self._recorded: Any = None
        self._time = 0.0

    def record(self, stream: Any = None) -> None:
        """Set the event after the work that was submitted to the stream so far, by default to the current one."""
        instance = self._find()
        try:
            stream = stream or instance.backend.current_stream(instance.index)
        except NotImplementedError:
            instance.backend.synchronize(instance.index)
            self._time, self._recorded = time.perf_counter(), self
            return
        self._recorded = stream.record()

    def wait(self, stream: Any = None) -> None:
        """Let the work that is submitted to the stream from now on begin after the event."""
        if self._recorded in (None, self):
            return
        instance = self._find()
        (stream or instance.backend.current_stream(instance.index)).wait_event(self._recorded)

    def query(self) -> bool:
        """Return whether the work before the event is complete; True if it was not recorded."""
        return self._recorded in (None, self) or bool(self._recorded.query())

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        if self._recorded not in (None, self):
            self._recorded.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the time between the two events in milliseconds.

        Raises ``ValueError`` without ``enable_timing`` or before both were recorded, ``RuntimeError`` if the work
        before one of them is not complete, ``NotImplementedError`` if the backend's events measure no times.
        """
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'")
        if self._recorded is None or end_event._recorded is None:
            raise ValueError("Both events must be recorded before calculating elapsed time")
        if self._recorded is self or end_event._recorded is end_event:
            return (end_event._time - self._time) * 1e3
        measure = getattr(self._recorded, "elapsed_time", None)
        if measure is None:
            raise NotImplementedError(f"the events of backend {self._find().backend.name!r} measure no times")
        return float(measure(end_event._recorded))

    def __repr__(self) -> str:
        return f"<Event, {'not recorded' if self._recorded is None else 'recorded'}>"
