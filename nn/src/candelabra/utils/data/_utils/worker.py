"""The process of a worker: it receives orders, fetches their batches, and sends them back."""

from __future__ import annotations

import random
import signal
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from typing import Any, Final

from candelabra import device
from candelabra.random import manual_seed
from candelabra.utils.data._utils.fetch import END, Fetching
from candelabra.utils.data._utils.shared_memory import SegmentWriter

__all__ = ["WorkerError", "WorkerInfo", "WorkerSetup", "get_worker_info", "run_worker"]


@dataclass(frozen=True)
class WorkerInfo:
    """A worker of a :class:`DataLoader`, as :func:`get_worker_info` returns it in that worker's process.

    Attributes:
        id: the number of the worker, from 0.
        num_workers: the number of workers.
        seed: the seed of this worker's generators, the loader's base seed + ``id``.
        dataset: the worker's copy of the data set.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any


_current: Final[list[WorkerInfo]] = []


def get_worker_info() -> WorkerInfo | None:
    """Return the :class:`WorkerInfo` of this process, or None in a process that is no worker."""
    return _current[-1] if _current else None


@dataclass(frozen=True)
class WorkerSetup:
    """What a worker is started with."""

    id: int
    num_workers: int
    seed: int
    fetching: Fetching
    init: Callable[[int], Any] | None
    default_device: str
    segment_prefix: str


@dataclass(frozen=True)
class WorkerError:
    """An exception of a worker: its class, if it can be pickled, and its traceback as text."""

    kind: type[Exception]
    worker: int
    text: str

    @classmethod
    def of(cls, error: Exception, worker: int) -> WorkerError:
        """Describe an exception that was caught in a worker."""
        kind = type(error)
        try:
            ForkingPickler.dumps(kind)
        except Exception:  # a class inside of a function, say
            kind = RuntimeError
        return cls(kind, worker, "".join(traceback.format_exception(error)))

    def exception(self) -> Exception:
        """Return an exception of the same class with the worker's traceback as its message.

        A class whose constructor does not accept one message is replaced by ``RuntimeError``.
        """
        message = f"Caught {self.kind.__name__} in DataLoader worker process {self.worker}.\nOriginal {self.text}"
        try:
            return self.kind(_Message(message))
        except Exception:
            return RuntimeError(message)


class _Message(str):
    """A text that stays readable in ``KeyError``, which shows the ``repr`` of its argument."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def run_worker(setup: WorkerSetup, orders: Connection, results: Connection, inherited: Sequence[Connection]) -> None:
    """Serve orders until None is one, or the program closes the pipe or ends.

    An order is ``(epoch, number, indices, segments that are free again)`` and a result ``(epoch, number, batch)``. The
    batch is a ``PackedBatch``, a :class:`WorkerError`, or None at the end of a stream. ``inherited`` are the ends of
    pipes that a forked process has, and that are not its own.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the program stops its workers.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # A handler of the program is not for its workers.
    for connection in inherited:
        connection.close()
    _seed_generators(setup.seed, setup.id)
    fetching = setup.fetching
    _current.append(WorkerInfo(setup.id, setup.num_workers, setup.seed, fetching.dataset))
    inbox = _Inbox(orders)
    writer = SegmentWriter(setup.segment_prefix)
    failure: WorkerError | None = None
    epoch, fetcher = -1, None
    with device(setup.default_device):
        try:
            if setup.init is not None:
                setup.init(setup.id)
        except Exception as error:
            failure = WorkerError.of(error, setup.id)
        while (order := inbox.get()) is not None:
            wanted, number, indices, freed = order
            writer.recycle(freed)
            result: Any = failure
            if failure is None:
                try:
                    if wanted != epoch or fetcher is None:
                        fetcher = fetching.start()
                        epoch = wanted
                    batch = fetcher.fetch(indices)
                    result = None if batch is END else writer.pack(batch)
                    del batch
                except Exception as error:
                    result = WorkerError.of(error, setup.id)
            try:
                results.send((wanted, number, result))
            except OSError:  # The program has closed the pipe and reads no more results.
                return


class _Inbox:
    """The orders of a worker, received by a thread of its own.

    The program must be able to send an order at any time: if both sides waited until the other one reads, with pipes
    that are full, neither would go on.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._is_closed = False
        threading.Thread(target=self._receive, daemon=True, name="DataLoader orders").start()

    def get(self) -> Any:
        """Return the next order, or None once the program has closed the pipe or has ended."""
        order = self._queue.get()
        return None if self._is_closed else order

    def _receive(self) -> None:
        parent = parent_process()
        ends: list[Any] = [self._connection, *([] if parent is None else [parent.sentinel])]
        with suppress(EOFError, OSError):
            while self._connection in wait(ends) and (order := self._connection.recv()) is not None:
                self._queue.put(order)
        self._is_closed = True
        self._queue.put(None)


def _seed_generators(seed: int, worker: int) -> None:
    """Seed Python's, NumPy's and candelabra's generators, so that no two workers repeat each other's numbers."""
    random.seed(seed)
    manual_seed(seed)
    with suppress(ImportError):
        import numpy

        numpy.random.seed(numpy.random.SeedSequence([seed, worker]).generate_state(4))


def __dir__() -> list[str]:
    return sorted(__all__)
