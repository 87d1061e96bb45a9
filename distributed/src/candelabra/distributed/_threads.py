"""The engine ``threads``: each rank is a thread of one process, for tests and for trying things out.

Its collectives have the semantics of processes: a rank that does not arrive keeps the others waiting, and buffers are
copied. :func:`candelabra.distributed.threads.run` starts the ranks.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from candelabra.distributed.engine import (
    REDUCTIONS,
    Communicator,
    Engine,
    EngineUnavailable,
    Request,
    hookimpl,
)


class RankFailed(RuntimeError):
    """Another rank has failed, so this one cannot go on."""


class Meeting:
    """The arguments of all ranks of one collective."""

    def __init__(self, size: int) -> None:
        self.values: list[Any] = [None] * size
        self.calls: list[str] = [""] * size
        self.arrived = 0
        self.left = 0


class Job:
    """What the ranks of one run share."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.changed = threading.Condition()
        self.failure: str | None = None
        self.meetings: dict[tuple[Any, int], Meeting] = {}
        self.mail: dict[tuple[Any, int, int], deque[tuple[int, bytes]]] = {}

    def fail(self, reason: str) -> None:
        """Release every rank that waits, with an error. The first reason stays."""
        with self.changed:
            self.failure = self.failure or reason
            self.changed.notify_all()

    def check(self) -> None:
        """Raise :class:`RankFailed` if a rank has failed."""
        if self.failure is not None:
            raise RankFailed(self.failure)


_here = threading.local()


def enter(job: Job | None, rank: int = -1) -> None:
    """Make this thread a rank of a job, or with None no rank."""
    _here.job, _here.rank = job, rank


class ThreadRequest(Request):
    """A send, which is complete at once, or a receive, which waits for its mail."""

    def __init__(self, job: Job, buffer: memoryview | None, address: tuple[Any, int, int], source: int | None) -> None:
        self._job, self._buffer, self._address, self._source = job, buffer, address, source

    def test(self) -> bool:
        if self._buffer is None:
            return True
        with self._job.changed:
            self._job.check()
            box = self._job.mail.get(self._address, deque())
            for number, (source, data) in enumerate(box):
                if self._source in (None, source):
                    if len(data) != len(self._buffer):
                        raise ValueError(
                            f"rank {source} has sent {len(data)} bytes, but the buffer has {len(self._buffer)}"
                        )
                    del box[number]
                    self._buffer[:] = data
                    self._buffer, self._source = None, source
                    return True
        return False

    def source(self) -> int:
        assert self._source is not None
        return self._source


class ThreadCommunicator(Communicator):
    """One rank's end of a group of threads."""

    def __init__(self, job: Job, name: Any, size: int, rank: int) -> None:
        self._job, self._name, self.size, self.rank = job, name, size, rank
        self._count = 0

    def _meet(self, call: str, value: Any) -> list[Any]:
        """Return the arguments of all ranks, once all have arrived. Raise ValueError if their calls differ."""
        job, key = self._job, (self._name, self._count)
        self._count += 1
        with job.changed:
            meeting = job.meetings.setdefault(key, Meeting(self.size))
            meeting.values[self.rank], meeting.calls[self.rank] = value, call
            meeting.arrived += 1
            if meeting.arrived == self.size:
                job.changed.notify_all()
            while meeting.arrived < self.size:
                job.check()
                job.changed.wait()
            meeting.left += 1
            if meeting.left == self.size:
                del job.meetings[key]
        if len(set(meeting.calls)) > 1:
            calls = "; ".join(f"rank {rank}: {each}" for rank, each in enumerate(meeting.calls))
            raise ValueError(f"the ranks make different calls: {calls}")
        return meeting.values

    def subset(self, ranks: Sequence[int]) -> Communicator | None:
        name = (self._name, self._count, tuple(ranks))
        self._meet(f"subset {list(ranks)}", None)
        return ThreadCommunicator(self._job, name, len(ranks), ranks.index(self.rank)) if self.rank in ranks else None

    def broadcast(self, buffer: memoryview, root: int) -> None:
        sent = self._meet(f"broadcast from {root}", bytes(buffer) if self.rank == root else None)[root]
        if self.rank != root:
            _fill(buffer, sent)

    def all_reduce(self, buffer: memoryview, dtype: str, op: str) -> None:
        _fill(buffer, _reduced(self._meet(f"all_reduce {dtype} {op}", bytes(buffer)), dtype, op))

    def all_gather(self, send: memoryview, receive: memoryview) -> None:
        _fill(receive, b"".join(self._meet("all_gather", bytes(send))))

    def all_to_all(
        self, send: memoryview, receive: memoryview, send_counts: Sequence[int], receive_counts: Sequence[int]
    ) -> None:
        ends = np.cumsum([0, *send_counts]).tolist()
        parts = [bytes(send[low:high]) for low, high in pairwise(ends)]
        received = [each[self.rank] for each in self._meet("all_to_all", parts)]
        for source, (part, count) in enumerate(zip(received, receive_counts, strict=True)):
            if len(part) != count:
                raise ValueError(f"rank {source} has sent {len(part)} bytes, but {count} were expected from it")
        _fill(receive, b"".join(received))

    def send(self, buffer: memoryview, destination: int, tag: int) -> Request:
        address = (self._name, destination, tag)
        with self._job.changed:
            self._job.check()
            self._job.mail.setdefault(address, deque()).append((self.rank, bytes(buffer)))
        return ThreadRequest(self._job, None, address, self.rank)

    def receive(self, buffer: memoryview, source: int | None, tag: int) -> Request:
        return ThreadRequest(self._job, buffer, (self._name, self.rank, tag), source)

    def abort(self, reason: str) -> None:
        self._job.fail(reason)


def _fill(buffer: memoryview, data: bytes) -> None:
    if len(buffer) != len(data):
        raise ValueError(f"the buffer has {len(buffer)} bytes, but the ranks have sent {len(data)}")
    buffer[:] = data


def _reduced(values: Sequence[bytes], dtype: str, op: str) -> bytes:
    """Reduce in the order of ranks."""
    if len({len(value) for value in values}) > 1:
        raise ValueError(f"the ranks have buffers of different sizes: {[len(value) for value in values]} bytes")
    arrays = [np.frombuffer(value, dtype) for value in values]
    with np.errstate(all="ignore"):
        return reduce(REDUCTIONS[op], arrays).tobytes()


class ThreadEngine(Engine):
    """Threads of one process."""

    name = "threads"

    def start(self, rank: int, world_size: int, timeout: timedelta) -> Communicator:
        job: Job | None = getattr(_here, "job", None)
        if job is None:
            raise EngineUnavailable(
                "the engine 'threads' serves ranks that are threads: start them by candelabra.distributed.threads.run()"
            )
        for name, given, known in (("rank", rank, _here.rank), ("world_size", world_size, job.size)):
            if given not in (-1, known):
                raise ValueError(
                    f"init_process_group: {name} is {given}, but this thread is rank {_here.rank} of {job.size}"
                )
        return ThreadCommunicator(job, "world", job.size, _here.rank)


@hookimpl
def candelabra_engine() -> Engine:
    """Return the engine."""
    return ThreadEngine()
