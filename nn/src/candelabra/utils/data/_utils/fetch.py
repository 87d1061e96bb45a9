"""Fetching: from indices, or the next items of a stream, to a collated batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from candelabra.utils.data._utils.collate import default_collate, stacks_tensors
from candelabra.utils.data.dataset import Subset, TensorDataset

__all__ = ["END", "Fetching", "MapFetcher", "StreamFetcher"]

END: Final = object()
"""What a fetcher returns when its stream has ended."""


@dataclass(frozen=True)
class Fetching:
    """How a loader makes batches: everything that is needed for it in another process.

    ``batch_size`` is that of a stream, None for single items; ``batched`` says whether orders are lists of indices.
    """

    dataset: Any
    is_stream: bool
    batched: bool
    batch_size: int | None
    drop_last: bool
    collate_fn: Callable[[Any], Any]

    def start(self) -> MapFetcher | StreamFetcher:
        """Return a fetcher for one epoch. For a stream, this calls ``iter`` on the data set."""
        return StreamFetcher(self) if self.is_stream else MapFetcher(self)


class MapFetcher:
    """Fetches the items of a data set by index."""

    def __init__(self, how: Fetching) -> None:
        self._how = how
        several = getattr(how.dataset, "__getitems__", None)
        self._several = several if callable(several) else None
        self._gather = gather_of(how.dataset) if how.collate_fn is default_collate else None

    def fetch(self, order: Any) -> Any:
        """Return the batch of a list of indices, or the item of one index."""
        how = self._how
        if not how.batched:
            return how.collate_fn(how.dataset[order])
        dataset = how.dataset
        if self._gather is not None and stacks_tensors() and all(type(index) is int for index in order):
            return self._gather(order)
        items = [dataset[index] for index in order] if self._several is None else self._several(order)
        return how.collate_fn(items)


def gather_of(dataset: Any) -> Callable[[list[int]], list[Any]] | None:
    """Return a function that computes a batch of a :class:`TensorDataset`, or of its subset, with one index per tensor.

    The function takes a list of indices. Its result equals that of :func:`default_collate` for the single items. For
    other data sets, and for subclasses that override ``__getitem__``, None is returned.
    """
    kind = type(dataset)
    if isinstance(dataset, TensorDataset):
        if kind.__getitem__ is not TensorDataset.__getitem__ or hasattr(dataset, "__getitems__"):
            return None
        return lambda indices: [tensor[indices] for tensor in dataset.tensors]
    if isinstance(dataset, Subset):
        inner = gather_of(dataset.dataset)
        own = kind.__getitem__ is not Subset.__getitem__ or kind.__getitems__ is not Subset.__getitems__
        return None if inner is None or own else lambda indices: inner([int(dataset.indices[i]) for i in indices])
    return None


class StreamFetcher:
    """Fetches the next items of a stream."""

    def __init__(self, how: Fetching) -> None:
        self._how = how
        self._items = iter(how.dataset)
        self._ended = False

    def fetch(self, order: Any) -> Any:
        """Return the next batch or item, or :data:`END`. A stream has no indices: ``order`` is not read."""
        how = self._how
        if not self._ended:
            batch = list(islice(self._items, how.batch_size if how.batched else 1))
            self._ended = not batch or (how.drop_last and how.batch_size is not None and len(batch) < how.batch_size)
            if not self._ended:
                return how.collate_fn(batch if how.batched else batch[0])
        return END
