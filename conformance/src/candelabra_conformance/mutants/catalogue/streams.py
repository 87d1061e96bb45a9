"""Faults of order: work that nobody waited for, errors that arrive nowhere or at the wrong address.

These are made of the fake accelerator, whose work really is put off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from candelabra.backend import Backend

from candelabra_conformance.fake.backend import FakeAccelerator
from candelabra_conformance.fake.streams import Event, Stream, Work
from candelabra_conformance.mutants.mutant import Mutant, listed, told

C = TypeVar("C", bound=type[FakeAccelerator])


def breaks_order(*operators: str, caught_by: str) -> Callable[[C], C]:
    """List a mutant that is a subclass of the fake accelerator."""

    def mark(cls: C) -> C:
        name, fault, family = told(cls)

        def make() -> Backend:
            return cls(name.replace("-", "_"))

        listed(Mutant(name, fault, make, operators, tuple(caught_by.split()), family))
        return cls

    return mark


@breaks_order(caught_by="device/copy* device/roundtrip* device/streams*")
class ReadsDoNotWait(FakeAccelerator):
    """``to_host`` reads what is in memory now, finished or not."""

    def to_host(self, payload: Any) -> memoryview:
        """Without a word to the stream."""
        return memoryview(bytes(self.reference.to_host(payload._hidden)))


@breaks_order(caught_by="device/streams* device/late-error*")
class SynchronizeDoesNothing(FakeAccelerator):
    """Waiting for the device waits for nothing, and raises nothing."""

    def synchronize(self, index: int) -> None:
        """Done at once."""


@breaks_order(caught_by="device/streams* device/late-error*")
class OnlyTheDefaultStreamIsWaitedFor(FakeAccelerator):
    """Waiting for the device waits for its default stream."""

    def synchronize(self, index: int) -> None:
        """Other streams go on."""
        self.schedule.defaults[index].synchronize()


class _Early(Stream):
    """A stream whose events are recorded too early."""

    def record(self) -> Event:
        """Done when the work before the last is."""
        return Event(self, max(self.submitted - 1, 0))

    def synchronize(self) -> None:
        """Waits rightly, all the same."""
        Event(self, self.submitted).synchronize()


@breaks_order(caught_by="device/streams*")
class EventsAreRecordedEarly(FakeAccelerator):
    """An event does not wait for the last work that was given before it."""

    def stream(self, index: int) -> Stream:
        """With such events."""
        return _Early(self.schedule, index)


@breaks_order(caught_by="device/late-error*")
class LateErrorsAreSwallowed(FakeAccelerator):
    """What goes wrong in work that was put off is never said."""

    def synchronize(self, index: int) -> None:
        """All is well."""
        for stream in self.schedule.finish(index):
            stream.errors.clear()

    def to_host(self, payload: Any) -> memoryview:
        """All is well here too."""
        self.synchronize(payload._block.index)
        return super().to_host(payload)


@breaks_order(caught_by="device/late-error*")
class LateErrorsNameNobody(FakeAccelerator):
    """An error in work that was put off does not say which operator it was."""

    def synchronize(self, index: int) -> None:
        """As a driver tells it."""
        try:
            super().synchronize(index)
        except Exception:
            raise RuntimeError("an unspecified launch failure") from None

    def to_host(self, payload: Any) -> memoryview:
        """The same at a read."""
        self.synchronize(payload._block.index)
        return super().to_host(payload)


@breaks_order(caught_by="device/late-error*")
class LateErrorsStay(FakeAccelerator):
    """After an error in work that was put off, every later wait raises it again."""

    error: Exception | None = None

    def synchronize(self, index: int) -> None:
        """Once failed, failed for ever."""
        try:
            super().synchronize(index)
        except Exception as error:
            self.error = self.error or error
        if self.error is not None:
            raise self.error

    def to_host(self, payload: Any) -> memoryview:
        """The same at a read."""
        self.synchronize(payload._block.index)
        return super().to_host(payload)


@breaks_order(caught_by="device/transfer* device/synchronize*")
class TransfersDoNotWait(FakeAccelerator):
    """A transfer to the other device takes what is in memory now."""

    def transfer(self, payload: Any, source: int, destination: int) -> Any:
        """Finished or not."""
        array = self.empty(destination, payload.shape, payload._dtype)
        self.reference.copy_(array._hidden, payload._hidden)
        return array


@breaks_order("floor", "erf", caught_by="*/inplace/*")
class CopiesOvertake(FakeAccelerator):
    """A copy on the device is made at once, before the work that fills its source."""

    def copy_(self, destination: Any, source: Any) -> Any:
        """Ahead of the queue."""
        self.reference.copy_(destination._hidden, source._hidden)
        return destination


@breaks_order(caught_by="device/synchronize* device/compare*")
class WorkRunsBackwards(FakeAccelerator):
    """What waits on a stream is run in reverse order."""

    def to_host(self, payload: Any) -> memoryview:
        """The last first."""
        stream = self.schedule.current(payload._block.index)
        if all(isinstance(work, Work) for work in stream.waiting):
            stream.waiting.reverse()
        return super().to_host(payload)
