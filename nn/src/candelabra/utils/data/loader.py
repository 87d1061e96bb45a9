"""The data loader: collated batches of a data set, prefetched by threads on request."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from candelabra import device
from candelabra.library import get_default_device
from candelabra.utils.data.collate import default_collate, default_convert
from candelabra.utils.data.dataset import IterableDataset
from candelabra.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler

__all__ = ["DataLoader", "WorkerInfo", "get_worker_info"]


@dataclass(frozen=True)
class WorkerInfo:
    """The worker of a :class:`DataLoader` that runs in the current thread."""

    id: int
    num_workers: int
    dataset: Any


class _Local(threading.local):
    info: WorkerInfo | None = None


_local: Final = _Local()
_END: Final = object()
"""The marker that a worker returns at the end of its stream."""


def get_worker_info() -> WorkerInfo | None:
    """Return the worker of the current thread, or None outside of workers."""
    return _local.info


class DataLoader:
    """Iterates over a data set in batches, as ``torch.utils.data.DataLoader``.

    ``batch_size=None``: single items, not collated. ``num_workers``: the number of *threads* that fetch and collate
    ``prefetch_factor`` batches each in advance. The order of batches does not depend on it, and errors of a worker are
    raised in the caller. Threads share the data set, and the process's default generator: random
    augmentation repeats from run to run only without workers, or with a generator for each item.
    ``pin_memory``, ``timeout`` and ``multiprocessing_context`` are PyTorch's options for processes: a true value is an
    error. Raises ``ValueError`` and ``TypeError`` with PyTorch's messages for options that exclude each other.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
    ) -> None:
        _check_workers(num_workers, prefetch_factor, persistent_workers)
        for name, value in (("timeout", timeout), ("multiprocessing_context", multiprocessing_context)):
            if value:
                raise ValueError(f"{name} is for worker processes, and the workers are threads: leave it out")
        if pin_memory:
            raise ValueError("pin_memory is not supported: leave it False")
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if prefetch_factor is None else prefetch_factor
        self.worker_init_fn = worker_init_fn
        self.generator = generator
        self._is_stream = isinstance(dataset, IterableDataset)
        if self._is_stream:
            _check_stream(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None and not self._is_stream:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None and not self._is_stream:
            assert sampler is not None
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        elif batch_size is not None and batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self._batched = batch_size is not None or batch_sampler is not None
        self.collate_fn = collate_fn or (default_collate if self._batched else default_convert)

    def __len__(self) -> int:
        """Return the number of batches. Raises ``TypeError`` for a stream without a length."""
        if self._is_stream:
            count = len(self.dataset)
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers:
            return self._with_workers()
        return self._stream(iter(self.dataset)) if self._is_stream else map(self._fetch, self._orders())

    def _orders(self) -> Iterator[Any]:
        """Iterate over lists of indices, or over single indices without batches."""
        return iter(self.batch_sampler if self.batch_sampler is not None else self.sampler)  # type: ignore[arg-type]

    def _fetch(self, order: Any) -> Any:
        if not self._batched:
            return self.collate_fn(self.dataset[order])
        several = getattr(self.dataset, "__getitems__", None)
        items = several(order) if callable(several) else [self.dataset[index] for index in order]
        return self.collate_fn(items)

    def _stream(self, items: Iterator[Any]) -> Iterator[Any]:
        if self.batch_size is None:
            yield from map(self.collate_fn, items)
            return
        while batch := list(islice(items, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    # -- workers ------------------------------------------------------------------------------------------------------
    def _with_workers(self) -> Iterator[Any]:
        """Iterate over batches in a fixed order: batch i is that of worker ``i % num_workers``, a thread."""
        position = str(get_default_device())  # Each thread has its own default device: the workers get the caller's.
        count = self.num_workers
        workers = [
            ThreadPoolExecutor(1, f"DataLoader-{number}", self._start_worker, (number,)) for number in range(count)
        ]
        try:
            yield from self._of_streams(workers, position) if self._is_stream else self._of_orders(workers, position)
        finally:
            for worker in workers:
                worker.shutdown(wait=True, cancel_futures=True)

    def _start_worker(self, number: int) -> None:
        _local.info = WorkerInfo(number, self.num_workers, self.dataset)

    def _in_worker(self, position: str, task: Callable[[], Any]) -> Any:
        with device(position):
            return task()

    def _initialized(self, worker: ThreadPoolExecutor, number: int) -> list[Future[Any]]:
        if self.worker_init_fn is None:
            return []
        return [worker.submit(self.worker_init_fn, number)]

    def _of_orders(self, workers: list[ThreadPoolExecutor], position: str) -> Iterator[Any]:
        for started in [f for number, worker in enumerate(workers) for f in self._initialized(worker, number)]:
            started.result()
        orders = enumerate(self._orders())
        waiting: deque[Future[Any]] = deque()
        ahead = len(workers) * self.prefetch_factor

        def submit(number: int, order: Any) -> None:
            worker = workers[number % len(workers)]
            waiting.append(worker.submit(self._in_worker, position, lambda: self._fetch(order)))

        for number, order in islice(orders, ahead):
            submit(number, order)
        while waiting:
            batch = waiting.popleft().result()
            for number, order in islice(orders, 1):
                submit(number, order)
            yield batch

    def _of_streams(self, workers: list[ThreadPoolExecutor], position: str) -> Iterator[Any]:
        for started in [f for number, worker in enumerate(workers) for f in self._initialized(worker, number)]:
            started.result()
        # Each worker has its own iterator; iter() is called in its thread, because get_worker_info() depends on it.
        opened = [w.submit(self._in_worker, position, lambda: self._stream(iter(self.dataset))) for w in workers]
        streams = [future.result() for future in opened]
        waiting: deque[tuple[int, Future[Any]]] = deque()

        def submit(number: int) -> None:
            task = workers[number].submit(self._in_worker, position, lambda: next(streams[number], _END))
            waiting.append((number, task))

        for number in list(range(len(workers))) * self.prefetch_factor:
            submit(number)
        ended: set[int] = set()
        while waiting:
            number, task = waiting.popleft()
            batch = task.result()
            if batch is _END:
                ended.add(number)
                continue
            if number not in ended:
                submit(number)
            yield batch


def _check_workers(num_workers: int, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 1:
        raise ValueError("prefetch_factor option should be positive")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    for name, value in (("shuffle", shuffle), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value not in (None, False):
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


def __dir__() -> list[str]:
    return sorted(__all__)
