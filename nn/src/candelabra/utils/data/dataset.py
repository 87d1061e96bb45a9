"""Data sets: indexed or iterable, combined and split."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Any, Generic, TypeVar

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset",
    "random_split",
]  # fmt: skip

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """A data set with items by index. Subclasses define ``__getitem__``, and ``__len__`` for samplers that need it.

    With ``__getitems__(indices)`` a :class:`DataLoader` asks for a whole batch at once.
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> ConcatDataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """A stream of items. Subclasses define ``__iter__``.

    Each worker of a :class:`DataLoader` has its own iterator; ``get_worker_info()`` returns the worker's number.
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

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
    """Several data sets of one length: item i is the tuple of their i-th items, or a dict if they are named."""

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

    def __len__(self) -> int:
        return self._length


class Subset(Dataset[T]):
    """The items of a data set at given indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (list, tuple)):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        chosen = [self.indices[i] for i in indices]
        several = getattr(self.dataset, "__getitems__", None)
        return list(several(chosen)) if callable(several) else [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset[T]):
    """The concatenation of data sets. Raises ``AssertionError`` if there are none, and for streams."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        length = len(self)
        if not -length <= index < length:
            raise ValueError(f"absolute value of index should not exceed dataset length, got {index} of {length}")
        place = index % length
        which = bisect_right(self.cumulative_sizes, place)
        return self.datasets[which][place - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset[T]):
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

    The remainder after rounding fractions goes to the first subsets, one item each. Raises ``ValueError`` for fractions
    outside of [0, 1] and for lengths that do not sum to that of the data set.
    """
    from candelabra.utils.data.sampler import shuffled

    total = len(dataset)
    if sum(lengths) <= 1 and math.isclose(sum(lengths), 1):
        for number, share in enumerate(lengths):
            if not 0 <= share <= 1:
                raise ValueError(f"Fraction at index {number} is not between 0 and 1")
        sizes = [math.floor(total * share) for share in lengths]
        for number in range(total - sum(sizes)):
            sizes[number % len(sizes)] += 1
    else:
        sizes = [int(length) for length in lengths]
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = shuffled(total, generator)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(accumulate(sizes), sizes)]


def __dir__() -> list[str]:
    return sorted(__all__)
