"""CUDA streams and events as the contract and PyTorch have them, over CuPy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from candelabra_cuda.engine import CudaEngine


class Event:
    """A place in a stream's work: done when all that was given to the stream before it is."""

    def __init__(self, engine: CudaEngine, made: Any) -> None:
        self._engine: Final = engine
        self._event: Final = made

    def query(self) -> bool:
        """Whether the work before it is done. Never waits."""
        return bool(self._event.done)

    def wait(self, stream: Stream | None = None) -> None:
        """Let ``stream`` (without one: the thread's current) go on only when this event is done."""
        (self._engine.stream() if stream is None else stream.cupy).wait_event(self._event)

    def synchronize(self) -> None:
        """Wait for the work before it; raises what went wrong in that."""
        self._event.synchronize()
        self._engine.errors.check()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds between this event and a later one, both done."""
        return float(self._engine.cupy.cuda.get_elapsed_time(self._event, end._event))


class Stream:
    """A queue of work on one device; as a context manager the current one of the thread."""

    def __init__(self, engine: CudaEngine, stream: Any) -> None:
        self._engine: Final = engine
        self.cupy: Final = stream
        """CuPy's stream; its ``ptr`` is what other libraries take."""

    def query(self) -> bool:
        """Whether all its work is done. Never waits."""
        return bool(self.cupy.done)

    def record(self) -> Event:
        """An event that is done when all work given so far is. It can be timed."""
        self._engine.enter()
        event = self._engine.cupy.cuda.Event()
        event.record(self.cupy)
        return Event(self._engine, event)

    def wait_event(self, event: Event) -> None:
        """Let what is given from now on wait for an event of any stream."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let what is given from now on wait for all that the other stream has now."""
        self.wait_event(stream.record())

    def synchronize(self) -> None:
        """Wait for its work; raises what went wrong in that."""
        self.cupy.synchronize()
        self._engine.errors.check()

    def __enter__(self) -> Stream:
        self._engine.enter()
        self.cupy.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.cupy.__exit__(*exception)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cupy == other.cupy

    def __hash__(self) -> int:
        return hash(self.cupy.ptr)
