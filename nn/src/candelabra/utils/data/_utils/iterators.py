"""One epoch of a loader, in this process or with workers."""

from __future__ import annotations

import warnings
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from candelabra.utils.data._utils.fetch import END, Fetching
from candelabra.utils.data._utils.worker import WorkerError

if TYPE_CHECKING:
    from candelabra.utils.data._utils.worker_pool import WorkerPool
    from candelabra.utils.data.dataloader import DataLoader

__all__ = ["InProcessIterator", "LoaderIterator", "WorkerIterator"]


class LoaderIterator(ABC):
    """An iterator over the batches of one epoch. ``len`` is that of the loader."""

    def __init__(self, loader: DataLoader[Any], orders: Iterator[Any]) -> None:
        self._loader = loader
        self._orders = orders
        self._count = 0

    def __iter__(self) -> LoaderIterator:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        batch = self._next()
        self._count += 1
        loader = self._loader
        expected = loader._reported_length
        if expected is not None and self._count > expected:
            message = (
                f"Length of IterableDataset {loader.dataset} was reported to be {expected} (when accessing "
                f"len(dataloader)), but {self._count} batches have been fetched. "
            )
            if loader.num_workers > 0:
                message += "With several workers, each must read a part of the stream: see get_worker_info()."
            warnings.warn(message, UserWarning, stacklevel=2)
        return batch

    @abstractmethod
    def _next(self) -> Any: ...


class InProcessIterator(LoaderIterator):
    """Fetches each batch when it is asked for."""

    def __init__(self, loader: DataLoader[Any], orders: Iterator[Any], fetching: Fetching) -> None:
        super().__init__(loader, orders)
        self._fetcher = fetching.start()

    def _next(self) -> Any:
        batch = self._fetcher.fetch(next(self._orders))
        if batch is END:
            raise StopIteration
        return batch


class WorkerIterator(LoaderIterator):
    """Orders batches of the workers in advance, and returns them in the order of their orders or as they arrive.

    Orders are numbered. With ``in_order``, each goes to the next worker in turn; otherwise, to the worker that has the
    fewest outstanding orders.
    """

    def __init__(self, loader: DataLoader[Any], orders: Iterator[Any], pool: WorkerPool) -> None:
        super().__init__(loader, orders)
        self._pool = pool
        self._epoch = pool.begin_epoch()
        self._ordered = self._due = 0
        self._outstanding: dict[int, int] = {}
        """The worker of each order whose batch was not returned yet."""
        self._arrived: dict[int, Any] = {}
        self._reading = list(range(len(pool)))
        """The workers whose streams have not ended."""
        if not loader.persistent_workers:
            weakref.finalize(self, pool.close)
        for _ in range(max(loader.prefetch_factor or 1, 1) * len(pool)):
            self._order()

    def _order(self) -> None:
        if not self._reading:
            return
        order = next(self._orders, END)
        if order is END:
            return
        if self._loader.in_order:
            worker = self._reading.pop(0)
            self._reading.append(worker)
        else:
            busy = list(self._outstanding.values())
            worker = min(self._reading, key=busy.count)
        self._outstanding[self._ordered] = worker
        self._pool.send(worker, self._epoch, self._ordered, order)
        self._ordered += 1

    def _next(self) -> Any:
        while self._outstanding:
            if self._pool.epoch != self._epoch:
                raise RuntimeError(
                    "the persistent workers serve a later iteration of this DataLoader: finish one before the next, or "
                    "leave persistent_workers=False"
                )
            number = self._due if self._loader.in_order else next(iter(self._arrived), -1)
            if number not in self._arrived:
                self._arrived.update((n, result) for _, n, result in self._pool.receive(self._loader.timeout))
                continue
            self._due += 1
            result, worker = self._arrived.pop(number), self._outstanding.pop(number)
            if result is None:  # the end of this worker's stream
                if worker in self._reading:
                    self._reading.remove(worker)
                continue
            self._order()
            if isinstance(result, WorkerError):
                raise result.exception()
            return self._pool.unpack(worker, result)
        if not self._loader.persistent_workers:
            self._pool.close()
        raise StopIteration
