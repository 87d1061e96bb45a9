"""Data sets: indexed or iterable, combined and split."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar

from candelabra.utils.data.sampler import permuted

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset",
    "random_split",
]  # fmt: skip

_T_co = TypeVar("_T_co", covariant=True)


class Dataset(Generic[_T_co]):
    """A data set with items by index. Subclasses define ``__getitem__``, and ``__len__`` for samplers that need it.

    With ``__getitems__(indices)`` a :class:`DataLoader` asks for a whole batch at once.
    """

    def __getitem__(self, index: Any) -> _T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[_T_co], Iterable[_T_co]):
    """A stream of items. Subclasses define ``__iter__``.

    Each worker of a :class:`DataLoader` has its own copy and iterator: ``get_worker_info()`` says which part it is to
    read, or all items come once per worker.
    """

    @abstractmethod
    def __iter__(self) -> Iterator[_T_co]: ...

    def __add__(self, other: Any) -> ChainDataset[Any]:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Tensors as a data set: item i is the tuple of their i-th slices. Raises ``AssertionError`` if lengths differ."""

    def __init__(self, *tensors: Any) -> None:
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Several data sets of one length: item i is the tuple of their i-th items, or a dict if they are named.

    Raises ``ValueError`` without data sets, for positional and named ones together, and if their lengths differ.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = kwargs or args
        lengths = {len(dataset) for dataset in (kwargs.values() if kwargs else args)}
        if len(lengths) > 1:
            raise ValueError("Size mismatch between datasets")
        self._length = lengths.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Return the items at several indices. ``ValueError`` if a data set returns another number of them."""
        if isinstance(self.datasets, dict):
            columns = [_items_of(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row)) for row in zip(*columns)]
        return list(zip(*(_items_of(dataset, indices) for dataset in self.datasets)))

    def __len__(self) -> int:
        return self._length


def _items_of(dataset: Any, indices: Sequence[int]) -> list[Any]:
    """Return the items at several indices, with one call if the data set can do that."""
    several = getattr(dataset, "__getitems__", None)
    if not callable(several):
        return [dataset[index] for index in indices]
    items = list(several(indices))
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class Subset(Dataset[_T_co]):
    """The items of a data set at given indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (list, tuple)):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Return the items at several places of the subset."""
        return _items_of(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[_T_co]):
    """The concatenation of data sets.

    ``cumulative_sizes`` holds where each ends. Raises ``AssertionError`` if there are none, and for streams.
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Return the running sums of the lengths."""
        return list(accumulate(len(dataset) for dataset in sequence))

    @property
    def cummulative_sizes(self) -> list[int]:
        """An older name of ``cumulative_sizes``, with a ``FutureWarning``."""
        message = "`cummulative_sizes` attribute is renamed to `cumulative_sizes`"
        warnings.warn(message, FutureWarning, stacklevel=2)
        return self.cumulative_sizes

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        length = len(self)
        if index < -length:
            raise ValueError(f"absolute value of index should not exceed dataset length, got {index} of {length}")
        if index >= length:
            raise IndexError(f"index {index} is out of range for {length} items")
        place = index % length
        which = bisect_right(self.cumulative_sizes, place)
        return self.datasets[which][place - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[_T_co]):
    """The concatenation of streams. Raises ``AssertionError`` for data sets that are not streams."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not all(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ChainDataset only supports IterableDataset")

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self.datasets)

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset[Any]]:
    """Split into disjoint random subsets of given lengths, or of given fractions that sum to 1.

    The remainder after rounding fractions goes to the first subsets, one item each. A fraction that gives no items
    causes a ``UserWarning``. The order is drawn from ``generator``, or from the default one. Raises ``ValueError`` for
    fractions outside of [0, 1] and for lengths that do not sum to that of the data set.
    """
    total = len(dataset)
    if sum(lengths) <= 1 and math.isclose(sum(lengths), 1):
        for number, share in enumerate(lengths):
            if not 0 <= share <= 1:
                raise ValueError(f"Fraction at index {number} is not between 0 and 1")
        sizes = [math.floor(total * share) for share in lengths]
        for number in range(total - sum(sizes)):
            sizes[number % len(sizes)] += 1
        for number, size in enumerate(sizes):
            if size == 0:
                empty = f"Length of split at index {number} is 0. This might result in an empty dataset."
                warnings.warn(empty, UserWarning, stacklevel=2)
    else:
        sizes = [int(length) for length in lengths]
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = permuted(total, generator)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(accumulate(sizes), sizes)]


def __dir__() -> list[str]:
    return sorted(__all__)
