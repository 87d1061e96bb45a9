"""CUDA streams and events of CuPy, with the interface of the backend contract and of PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from candelabra_cuda.engine import CudaEngine


class CudaEvent:
    """A point in a stream, which is complete when all work queued before it is."""

    def __init__(self, engine: CudaEngine, event: Any) -> None:
        self._engine: Final = engine
        self._event: Final = event

    def query(self) -> bool:
        """Return whether the work before the event is complete. Never waits."""
        return bool(self._event.done)

    def wait(self, stream: CudaStream | None = None) -> None:
        """Make ``stream`` (default: the current one) wait for this event."""
        (self._engine.stream() if stream is None else stream.cupy).wait_event(self._event)

    def synchronize(self) -> None:
        """Wait for the work before the event, and raise its errors."""
        self._event.synchronize()
        self._engine.errors.check()

    def elapsed_time(self, end: CudaEvent) -> float:
        """Return the milliseconds between this event and a later one. Both must be complete."""
        return float(self._engine.cupy.cuda.get_elapsed_time(self._event, end._event))


class CudaStream:
    """A queue of work on one device. As a context manager, it is the current stream of the thread."""

    def __init__(self, engine: CudaEngine, stream: Any) -> None:
        self._engine: Final = engine
        self.cupy: Final = stream
        """The stream of CuPy; its ``ptr`` is the handle for other libraries."""

    def query(self) -> bool:
        """Return whether all work is complete. Never waits."""
        return bool(self.cupy.done)

    def record(self) -> CudaEvent:
        """Return an event that is complete when all work queued so far is. The event records its time."""
        self._engine.enter()
        event = self._engine.cupy.cuda.Event()
        event.record(self.cupy)
        return CudaEvent(self._engine, event)

    def wait_event(self, event: CudaEvent) -> None:
        """Make all work queued from now on wait for an event of any stream."""
        event.wait(self)

    def wait_stream(self, stream: CudaStream) -> None:
        """Make all work queued from now on wait for all work that ``stream`` has now."""
        self.wait_event(stream.record())

    def synchronize(self) -> None:
        """Wait for all work of the stream, and raise its errors."""
        self.cupy.synchronize()
        self._engine.errors.check()

    def __enter__(self) -> CudaStream:
        self._engine.enter()
        self.cupy.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.cupy.__exit__(*exception)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CudaStream) and self.cupy == other.cupy

    def __hash__(self) -> int:
        return hash(self.cupy.ptr)
