"""Samplers: iterators over the indices of a data set, one by one or in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

__all__ = [
    "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler",
]  # fmt: skip

T = TypeVar("T", covariant=True)


def shuffled(n: int, generator: Any) -> list[int]:
    """Return the integers below n in random order, drawn on the device of the generator."""
    from candelabra import randperm

    found: Any = randperm(n, generator=generator, device=None if generator is None else generator.device)
    return list(found.tolist())


def _drawn(n: int, count: int, generator: Any) -> list[int]:
    from candelabra import randint

    place = None if generator is None else generator.device
    found: Any = randint(0, n, (count,), generator=generator, device=place)
    return list(found.tolist())


class Sampler(Generic[T]):
    """The base class. Subclasses define ``__iter__``, and ``__len__`` if it is known."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """The indices 0, 1, 2, … in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order: each one once, ``num_samples`` of them, or drawn with ``replacement``.

    Raises ``TypeError`` and ``ValueError`` with PyTorch's messages for invalid options.
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        wanted = self.num_samples
        if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 0:
            raise ValueError(f"num_samples should be a non-negative integer value, but got num_samples={wanted}")

    @property
    def num_samples(self) -> int:
        """The number of indices, by default the number of items."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, left = len(self.data_source), self.num_samples
        if self.replacement:
            yield from _drawn(n, left, self.generator) if left else ()
            return
        while left > 0 and n:
            part = shuffled(n, self.generator)[:left]
            left -= len(part)
            yield from part

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        return iter([self.indices[i] for i in shuffled(len(self.indices), self.generator)])

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given weights, which need not sum to 1. Raises ``ValueError`` unless the weights are 1-D."""

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = [float(weight) for weight in weights]
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        from candelabra.library import public_function

        place = None if self.generator is None else self.generator.device
        weights: Any = public_function("tensor")(self.weights, device=place)
        return iter(
            public_function("multinomial")(
                weights, self.num_samples, self.replacement, generator=self.generator
            ).tolist()
        )

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` indices of another sampler. The last list may be shorter, or is dropped."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def __dir__() -> list[str]:
    return sorted(__all__)
