"""Samplers: iterators over the indices of a data set, one by one or in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from candelabra.dtypes import float64
from candelabra.library import plugins, public_function
from candelabra.random import Generator

__all__ = [
    "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler",
]  # fmt: skip

_T_co = TypeVar("_T_co", covariant=True)

_CHUNK: Final = 4096
"""Indices become Python numbers this many at a time, so that an order takes the memory of its tensor only."""


# -- drawing ----------------------------------------------------------------------------------------------------------
# Orders are drawn in the host's memory: a generator of any device gives the same numbers there, and no other device is
# opened for them.
def draw_seed(generator: Any) -> int:
    """Draw a seed, 0 to 2**63 - 2, from a generator, or from the default one if it is None."""
    return int(public_function("randint")(0, 2**63 - 1, (), generator=generator, device=plugins.reference_device()))


def _seeded(generator: Any) -> Any:
    """Return the generator, or for None a new one that the default generator seeds.

    With a generator of its own, an order does not depend on what the program draws while it iterates.
    """
    return Generator().manual_seed(draw_seed(None)) if generator is None else generator


def _permutation(n: int, generator: Any) -> Any:
    return public_function("randperm")(n, generator=generator, device=plugins.reference_device())


def _numbers(indices: Any, count: int) -> Iterator[int]:
    if count == len(indices) <= _CHUNK:
        yield from indices.tolist()
        return
    for start in range(0, count, _CHUNK):
        yield from indices[start : min(start + _CHUNK, count)].tolist()


def permuted(n: int, generator: Any) -> list[int]:
    """Return the integers below ``n`` in random order, drawn from a generator or from the default one."""
    found: list[int] = _permutation(n, generator).tolist()
    return found


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


# -- samplers ---------------------------------------------------------------------------------------------------------
class Sampler(Generic[_T_co]):
    """The base class. Subclasses define ``__iter__``, and ``__len__`` if it is known."""

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """The indices 0, 1, 2, … of ``data_source`` in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices in random order.

    Args:
        data_source: what has a length.
        replacement: draw each index independently; otherwise permutations follow one another.
        num_samples: how many indices to draw, by default one permutation. They are drawn in chunks, so a large number
            takes no memory.
        generator: the source of randomness. By default each iteration draws a seed from the default generator.

    Raises ``TypeError`` and ``ValueError`` for invalid options.
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not _is_positive(self.num_samples):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """The number of indices, by default the number of items."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n, left = len(self.data_source), self.num_samples
        generator, device = _seeded(self.generator), plugins.reference_device()
        randint, randperm = public_function("randint"), public_function("randperm")
        while left > 0:
            if self.replacement:
                count = min(left, _CHUNK)
                yield from randint(0, n, (count,), generator=generator, device=device).tolist()
            else:
                count = min(left, n)
                yield from _numbers(randperm(n, generator=generator, device=device), count)
            left -= count

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order, each one once."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        count = len(self.indices)
        for place in _numbers(_permutation(count, self.generator), count):
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices 0 … ``len(weights) - 1``, drawn with given weights.

    Args:
        weights: a sequence or 1-D tensor of non-negative numbers, which need not sum to 1.
        num_samples: how many indices to draw.
        replacement: whether an index may be drawn more than once.
        generator: the source of randomness, by default the default generator.

    Raises ``ValueError`` for invalid options and ``RuntimeError``, when drawn, for weights that permit no draw.
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if not _is_positive(num_samples):
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        host = plugins.reference_device()
        self.weights = public_function("as_tensor")(weights, dtype=float64, device=host)
        if self.weights.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = public_function("multinomial")(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        return _numbers(drawn, self.num_samples)

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of ``batch_size`` indices of another sampler. The last list may be shorter, or ``drop_last`` drops it.

    Raises ``ValueError`` for invalid options.
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not _is_positive(batch_size):
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


def __dir__() -> list[str]:
    return sorted(__all__)
