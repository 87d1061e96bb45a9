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


@breaks_order(caught_by="device/streams* device/copy* device/roundtrip* device/async*")
class ReadsDoNotWait(FakeAccelerator):
    """``to_host`` reads what is in memory now, finished or not."""

    def to_host(self, payload: Any) -> memoryview:
        """Without a word to the stream."""
        return memoryview(bytes(self.reference.to_host(payload._hidden)))


@breaks_order(caught_by="device/streams* device/async*")
class SynchronizeDoesNothing(FakeAccelerator):
    """Waiting for the device waits for nothing, and raises nothing."""

    def synchronize(self, index: int) -> None:
        """Done at once."""


@breaks_order(caught_by="device/streams* device/async*")
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


class _Deaf(Stream):
    """A stream that waits for no other."""

    def wait_event(self, event: Event) -> None:
        """Nothing is noted."""

    def wait_stream(self, stream: Stream) -> None:
        """Nothing is noted."""


@breaks_order(caught_by="device/streams*")
class StreamsDoNotWaitForEvents(FakeAccelerator):
    """A stream that was told to wait for another goes on at once."""

    def stream(self, index: int) -> Stream:
        """Deaf ones."""
        return _Deaf(self.schedule, index)


class _Outside(Stream):
    """A stream whose ``with`` block does not make it the current one."""

    def __enter__(self) -> Stream:
        self.schedule.entered(self.index).append(self.schedule.defaults[self.index])
        return self


@breaks_order(caught_by="device/streams*")
class StreamsAreNotEntered(FakeAccelerator):
    """Work given inside a stream's block goes to the default stream."""

    def stream(self, index: int) -> Stream:
        """Never current."""
        return _Outside(self.schedule, index)


@breaks_order(caught_by="device/streams* device/async*")
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


@breaks_order(caught_by="device/async*")
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


@breaks_order(caught_by="device/async*")
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


@breaks_order("add", caught_by="device/transfer* device/streams*")
class TransfersDoNotWait(FakeAccelerator):
    """A transfer to the other device takes what is in memory now."""

    def transfer(self, payload: Any, source: int, destination: int) -> Any:
        """Finished or not."""
        array = self.empty(destination, payload.shape, payload._dtype)
        self.reference.copy_(array._hidden, payload._hidden)
        return array


@breaks_order(caught_by="device/dlpack*")
class ExportsDoNotWait(FakeAccelerator):
    """A DLPack capsule is handed out before the work on its memory is done."""

    def to_dlpack(self, payload: Any, index: int, **options: Any) -> Any:
        """The same capsule, too early."""
        waiting = self.schedule.current(index)
        held, waiting_work = list(waiting.waiting), waiting.waiting
        waiting_work.clear()
        submitted, waiting.submitted = waiting.submitted, waiting.finished
        try:
            return super().to_dlpack(payload, index, **options)
        finally:
            waiting_work.extend(held)
            waiting.submitted = submitted


@breaks_order("copied", "clone", caught_by="device/copy* device/streams* copied/*")
class CopiesOvertake(FakeAccelerator):
    """A copy on the device is made at once, before the work that fills its source."""

    def copy_(self, destination: Any, source: Any) -> Any:
        """Ahead of the queue."""
        self.reference.copy_(destination._hidden, source._hidden)
        return destination


@breaks_order("add", "sum", caught_by="*/value/* */inplace/*")
class WorkRunsBackwards(FakeAccelerator):
    """What waits on a stream is run in reverse order."""

    def to_host(self, payload: Any) -> memoryview:
        """The last first."""
        stream = self.schedule.current(payload._block.index)
        if all(isinstance(work, Work) for work in stream.waiting):
            stream.waiting.reverse()
        return super().to_host(payload)
