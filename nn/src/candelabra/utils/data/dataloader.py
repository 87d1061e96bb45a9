"""The data loader: batches of a data set, fetched in this process or by worker processes."""

from __future__ import annotations

import multiprocessing
import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from multiprocessing.context import BaseContext
from typing import Any, Generic, TypeVar

from candelabra.library import get_default_device
from candelabra.utils.data._utils.collate import default_collate, default_convert
from candelabra.utils.data._utils.fetch import Fetching
from candelabra.utils.data._utils.iterators import InProcessIterator, LoaderIterator, WorkerIterator
from candelabra.utils.data._utils.worker import WorkerInfo, WorkerSetup, get_worker_info
from candelabra.utils.data._utils.worker_pool import WorkerPool, start_context
from candelabra.utils.data.dataset import IterableDataset
from candelabra.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed

__all__ = ["DataLoader", "WorkerInfo", "default_collate", "default_convert", "get_worker_info"]

_T_co = TypeVar("_T_co", covariant=True)

# Programs that wrap loaders ask for the class of their iterator, by PyTorch's names.
_BaseDataLoaderIter = LoaderIterator
_SingleProcessDataLoaderIter = InProcessIterator
_MultiProcessingDataLoaderIter = WorkerIterator


class DataLoader(Generic[_T_co]):
    """Iterates over a data set in batches.

    Args:
        dataset: a data set with items by index, or an :class:`IterableDataset`.
        batch_size: the items of a batch. None: single items, not collated.
        shuffle: whether to iterate in random order.
        sampler: the indices in their order, instead of ``shuffle``.
        batch_sampler: lists of indices, instead of ``batch_size``, ``shuffle``, ``sampler`` and ``drop_last``.
        num_workers: the number of processes that fetch and collate. 0: this process does.
        collate_fn: makes a batch of a list of items; by default :func:`default_collate`, for single items
            :func:`default_convert`.
        pin_memory: accepted for PyTorch's programs. It has no effect, because no device gains from it.
        drop_last: whether to drop a last batch that is shorter than the others.
        timeout: how many seconds to wait for a batch of a worker at most. 0: no limit.
        worker_init_fn: called with the worker's number in each worker when it starts.
        multiprocessing_context: how workers start: ``"fork"``, ``"forkserver"``, ``"spawn"``, or a context. By default
            by fork, and by forkserver where a device in use cannot be forked (an asynchronous one); what they need is
            pickled then.
        generator: the source of the order and of the workers' seeds, by default the default generator.
        prefetch_factor: how many batches each worker fetches in advance, by default 2.
        persistent_workers: whether the workers, with their copies of the data set, stay for the next epoch.
        pin_memory_device: as ``pin_memory``.
        in_order: whether batches come in the order of the sampler. Otherwise a batch that is ready comes first.

    Batches of workers come through shared memory. Each worker has the seed ``base seed + number``, from which Python's,
    NumPy's and candelabra's generators are seeded; each iteration draws the base seed. An exception of a worker is
    raised as one of the same class, with its traceback in the message, and a worker that dies is a ``RuntimeError``.
    Workers stop when the iteration ends or its iterator is deleted.

    Raises ``ValueError`` and ``TypeError`` for options that exclude each other or have no valid value.
    """

    __initialized = False  # Programs that exchange the sampler of a loader unset it, by PyTorch's (mangled) name.

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
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
        if sampler is None:
            if self._is_stream:
                sampler = repeat(None)  # A stream has no indices: an order only says that another batch is wanted.
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.drop_last = drop_last
        self.num_workers = num_workers
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.persistent_workers = persistent_workers
        self.in_order = in_order
        self._reported_length: int | None = None  # of a stream, if it was asked for
        self._pool: WorkerPool | None = None
        self.__initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _FIXED and self.__initialized:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """How workers start, None for the default. ``ValueError`` and ``TypeError`` for what is no context."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if not self.num_workers > 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            methods = multiprocessing.get_all_start_methods()
            if isinstance(context, str):
                if context not in methods:
                    raise ValueError(
                        f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                        f"multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self._context = context

    def __len__(self) -> int:
        """Return the number of batches. Raises ``TypeError`` for a stream without a length."""
        if not self._is_stream:
            return len(self._index_sampler)
        count = len(self.dataset)
        if self.batch_size is not None:
            count = count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        self._reported_length = count
        return count

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        """The lists of indices, or the single indices without batches."""
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self) -> LoaderIterator:
        return self._get_iterator()

    def _get_iterator(self) -> LoaderIterator:
        orders: Iterator[Any] = repeat(None) if self._is_stream else iter(self._index_sampler)
        seed = draw_seed(self.generator)  # also without workers: the order then does not depend on their number
        if self.num_workers == 0:
            if self.timeout:
                raise AssertionError("timeout is for workers: DataLoader with num_workers=0 requires timeout == 0")
            return InProcessIterator(self, orders, self._fetching())
        pool = self._pool
        if pool is None or pool.is_closed:
            pool = WorkerPool(self._context or start_context(), self._setup(seed), self.prefetch_factor or 1)
            if self.persistent_workers:
                self._pool = pool
                weakref.finalize(self, pool.close)
        return WorkerIterator(self, orders, pool)

    def _fetching(self) -> Fetching:
        return Fetching(
            self.dataset, self._is_stream, self._auto_collation, self.batch_size, self.drop_last, self.collate_fn
        )

    def _setup(self, seed: int) -> WorkerSetup:
        where = str(get_default_device())
        return WorkerSetup(0, self.num_workers, seed, self._fetching(), self.worker_init_fn, where, "")

    def check_worker_number_rationality(self) -> None:
        """Warn of more workers than this process may use cores."""
        count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        if count is not None and self.num_workers > count:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {count}, which is smaller than what this DataLoader is going to "
                "create. Please be aware that excessive worker creation might get DataLoader running slow or even "
                "freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
                UserWarning,
                stacklevel=3,
            )


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    for name, value in (("shuffle", shuffle), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None and not (name == "shuffle" and value is False):
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )


def __dir__() -> list[str]:
    return sorted(__all__)
