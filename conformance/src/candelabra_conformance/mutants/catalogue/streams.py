"""Faults of order: missing waits, and late errors that are lost or name the wrong operator.

These mutants are based on the fake accelerator, which really defers its work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from candelabra.backend import Backend

from candelabra_conformance.fake.backend import FakeAccelerator
from candelabra_conformance.fake.streams import FakeEvent, Stream, StreamWork
from candelabra_conformance.mutants.mutant import Mutant, description_of, listed

C = TypeVar("C", bound=type[FakeAccelerator])


def breaks_order(*operators: str, caught_by: str) -> Callable[[C], C]:
    """Add a mutant that is a subclass of the fake accelerator."""

    def mark(cls: C) -> C:
        name, fault, family = description_of(cls)

        def make() -> Backend:
            return cls(name.replace("-", "_"))

        listed(Mutant(name, fault, make, operators, tuple(caught_by.split()), family))
        return cls

    return mark


@breaks_order(caught_by="device/copy* device/roundtrip* device/streams*")
class ReadsDoNotWait(FakeAccelerator):
    """``to_host`` reads the current memory, whether the work is complete or not."""

    def to_host(self, payload: Any) -> memoryview:
        """Read without waiting for the stream."""
        return memoryview(bytes(self.reference.to_host(payload._hidden)))


@breaks_order(caught_by="device/streams* device/late-error*")
class SynchronizeDoesNothing(FakeAccelerator):
    """Waiting for the device waits for nothing, and raises nothing."""

    def synchronize(self, index: int) -> None:
        """Return at once."""


@breaks_order(caught_by="device/streams* device/late-error*")
class OnlyTheDefaultStreamIsWaitedFor(FakeAccelerator):
    """Waiting for the device waits for its default stream."""

    def synchronize(self, index: int) -> None:
        """Wait for the default stream only."""
        self.schedule.defaults[index].synchronize()


class _Early(Stream):
    """A stream whose events are recorded too early."""

    def record(self) -> FakeEvent:
        """Return an event that is complete when all work but the last is."""
        return FakeEvent(self, max(self.submitted - 1, 0))

    def synchronize(self) -> None:
        """Wait for all work, correctly."""
        FakeEvent(self, self.submitted).synchronize()


@breaks_order(caught_by="device/streams*")
class EventsAreRecordedEarly(FakeAccelerator):
    """An event does not wait for the last work that was enqueued before it."""

    def stream(self, index: int) -> Stream:
        """Return a stream with such events."""
        return _Early(self.schedule, index)


@breaks_order(caught_by="device/late-error*")
class LateErrorsAreSwallowed(FakeAccelerator):
    """An error in deferred work is never raised."""

    def synchronize(self, index: int) -> None:
        """Wait, and ignore errors."""
        for stream in self.schedule.finish(index):
            stream.errors.clear()

    def to_host(self, payload: Any) -> memoryview:
        """Read, and ignore errors."""
        self.synchronize(payload._block.index)
        return super().to_host(payload)


@breaks_order(caught_by="device/late-error*")
class LateErrorsNameNobody(FakeAccelerator):
    """An error in deferred work does not name the operator."""

    def synchronize(self, index: int) -> None:
        """Raise the error with the text of a driver."""
        try:
            super().synchronize(index)
        except Exception:
            raise RuntimeError("an unspecified launch failure") from None

    def to_host(self, payload: Any) -> memoryview:
        """Raise the same error at a read."""
        self.synchronize(payload._block.index)
        return super().to_host(payload)


@breaks_order(caught_by="device/late-error*")
class LateErrorsStay(FakeAccelerator):
    """After an error in deferred work, every later wait raises it again."""

    error: Exception | None = None

    def synchronize(self, index: int) -> None:
        """Raise the first error again."""
        try:
            super().synchronize(index)
        except Exception as error:
            self.error = self.error or error
        if self.error is not None:
            raise self.error

    def to_host(self, payload: Any) -> memoryview:
        """Raise the first error again at a read."""
        self.synchronize(payload._block.index)
        return super().to_host(payload)


@breaks_order(caught_by="device/transfer* device/synchronize*")
class TransfersDoNotWait(FakeAccelerator):
    """A transfer to the other device copies the current memory."""

    def transfer(self, payload: Any, source: int, destination: int) -> Any:
        """Copy without waiting."""
        array = self.empty(destination, payload.shape, payload._dtype)
        self.reference.copy_(array._hidden, payload._hidden)
        return array


@breaks_order("floor", "erf", caught_by="*/inplace/*")
class CopiesOvertake(FakeAccelerator):
    """A copy on the device runs at once, before the work that fills its source."""

    def copy_(self, destination: Any, source: Any) -> Any:
        """Copy before the enqueued work."""
        self.reference.copy_(destination._hidden, source._hidden)
        return destination


@breaks_order(caught_by="device/synchronize* device/compare*")
class WorkRunsBackwards(FakeAccelerator):
    """The work of a stream runs in reverse order."""

    def to_host(self, payload: Any) -> memoryview:
        """Reverse the queue before the read."""
        stream = self.schedule.current(payload._block.index)
        if all(isinstance(work, StreamWork) for work in stream.waiting):
            stream.waiting.reverse()
        return super().to_host(payload)
