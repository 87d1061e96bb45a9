"""Data sets, samplers, collation and the data loader."""

from __future__ import annotations

import re
import threading
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)

Pair = namedtuple("Pair", "x y")


class Numbers(Dataset[int]):
    """A data set of the integers below n."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __getitem__(self, index: int) -> int:
        if index >= self.n:
            raise IndexError(f"no number {index}")
        return index

    def __len__(self) -> int:
        return self.n


class Stream(IterableDataset[int]):
    """A stream of the integers below n, divided among workers."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.n, step))

    def __len__(self) -> int:
        return self.n


# -- data sets --------------------------------------------------------------------------------------------------------
def test_datasets_are_indexed_and_combined() -> None:
    """Data sets of tensors, concatenations, subsets and stacks have the expected items."""
    tensors = TensorDataset(cd.arange(4), cd.arange(4) * 10)
    assert [t.item() for t in tensors[2]] == [2, 20]
    assert len(tensors) == 4
    both = Numbers(3) + Numbers(2)
    assert [both[i] for i in (0, 3, 4, -1)] == [0, 0, 1, 1]
    assert len(both) == 5
    part = Subset(both, [4, 2])
    assert [part[0], part[1]] == [1, 2]
    assert part.__getitems__([1, 0]) == [2, 1]
    assert Subset(part, [1]).__getitems__([0]) == [2]
    assert Subset(TensorDataset(cd.arange(4)), [3, 1])[[0, 1]][0].tolist() == [3, 1]
    assert StackDataset(Numbers(2), Numbers(2))[1] == (1, 1)
    named = StackDataset(a=Numbers(2), b=Numbers(2))
    assert named[1] == {"a": 1, "b": 1}
    assert len(named) == 2
    chain = Stream(2) + Stream(1)
    assert list(chain) == [0, 1, 0]
    assert len(chain) == 3


def test_random_split_is_disjoint_complete_and_repeatable() -> None:
    """The subsets of lengths or fractions are disjoint and complete; a generator's state determines them."""
    parts = random_split(Numbers(10), [0.5, 0.3, 0.2], generator=cd.Generator().manual_seed(1))
    assert [len(part) for part in parts] == [5, 3, 2]
    assert sorted(i for part in parts for i in part.indices) == list(range(10))
    again = random_split(Numbers(10), [5, 3, 2], generator=cd.Generator().manual_seed(1))
    assert [p.indices for p in again] == [p.indices for p in parts]
    assert [len(part) for part in random_split(Numbers(10), [1 / 3, 1 / 3, 1 / 3])] == [4, 3, 3]


# -- samplers ---------------------------------------------------------------------------------------------------------
def test_samplers_return_their_orders() -> None:
    """Samplers return indices in order, permuted, as a subset, with replacement, by weight, and in batches."""
    assert list(SequentialSampler(Numbers(3))) == [0, 1, 2]
    assert sorted(RandomSampler(Numbers(20))) == list(range(20))
    assert len(list(RandomSampler(Numbers(4), num_samples=10))) == 10
    assert set(RandomSampler(Numbers(2), replacement=True, num_samples=50)) == {0, 1}
    assert list(RandomSampler(Numbers(2), replacement=True, num_samples=0)) == []
    seeded = [list(RandomSampler(Numbers(9), generator=cd.Generator().manual_seed(3))) for _ in range(2)]
    assert seeded[0] == seeded[1]
    assert sorted(SubsetRandomSampler([5, 7])) == [5, 7]
    assert len(SubsetRandomSampler([5, 7])) == 2
    assert set(WeightedRandomSampler([0.0, 1.0, 0.0], 5)) == {1}
    assert len(WeightedRandomSampler([1.0], 5)) == 5
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(BatchSampler(range(5), 2, drop)) for drop in (False, True)] == [3, 2]


# -- collation --------------------------------------------------------------------------------------------------------
def test_collation_of_every_kind_of_item() -> None:
    """Tensors are stacked, numbers become tensors, strings a list, and containers are collated elementwise."""
    import numpy

    assert default_collate([cd.ones(2), cd.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    assert default_collate([1, 2]).dtype is cd.int64
    assert default_collate([1.0, 2.0]).dtype is cd.float64
    assert default_collate([True]).dtype is cd.bool
    assert default_collate(["a", "b"]) == ["a", "b"]
    assert default_collate([{"x": 1}, {"x": 2}])["x"].tolist() == [1, 2]
    assert [t.tolist() for t in default_collate([(1, 2), (3, 4)])] == [[1, 3], [2, 4]]
    pair = default_collate([Pair(1, 2), Pair(3, 4)])
    assert isinstance(pair, Pair)
    assert pair.y.tolist() == [2, 4]
    assert default_collate([numpy.ones(2, "float32")] * 2).shape == (2, 2)
    assert default_collate([numpy.float32(3)]).tolist() == [3]
    kept = default_convert({"a": numpy.ones(2), "b": ["s", 1], "p": Pair(numpy.zeros(1), b"x")})
    assert kept["a"].tolist() == [1, 1]
    assert kept["b"] == ["s", 1]
    assert kept["p"].x.tolist() == [0]


# -- the loader -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_come_in_order_with_any_number_of_workers(workers: int) -> None:
    """Threads change neither order nor content, and a loader can be iterated several times."""
    loader = DataLoader(Numbers(10), batch_size=3, num_workers=workers)
    for _ in range(2):
        assert [batch.tolist() for batch in loader] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
    assert len(loader) == 4
    dropped = DataLoader(Numbers(10), batch_size=3, num_workers=workers, drop_last=True)
    assert [batch.tolist() for batch in dropped] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert len(dropped) == 3
    single = DataLoader(Numbers(2), batch_size=None, num_workers=workers)
    assert list(single) == [0, 1]
    assert len(single) == 2
    chosen = DataLoader(Numbers(9), batch_sampler=[[8, 1], [2]], num_workers=workers, collate_fn=list)
    assert list(chosen) == [[8, 1], [2]]
    assert list(DataLoader(Numbers(0), batch_size=2, num_workers=workers)) == []


@pytest.mark.parametrize("workers", [0, 2])
def test_streams_are_batched_and_divided_among_workers(workers: int) -> None:
    """Each worker reads its part of a stream, and each item occurs in one batch."""
    batches = [b.tolist() for b in DataLoader(Stream(7), batch_size=2, num_workers=workers)]
    assert sorted(i for batch in batches for i in batch) == list(range(7))
    assert list(DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    assert [b.tolist() for b in DataLoader(Stream(3), batch_size=2, drop_last=True)] == [[0, 1]]
    lengths = [len(DataLoader(Stream(7), batch_size=2, drop_last=drop)) for drop in (False, True)]
    assert lengths == [4, 3]
    assert len(DataLoader(Stream(7), batch_size=None)) == 7


def test_shuffling_repeats_with_the_seed() -> None:
    """The default generator, or the loader's own, determines the order, which differs between epochs."""
    loader = DataLoader(Numbers(50), batch_size=50, shuffle=True)
    cd.manual_seed(5)
    first, second = next(iter(loader)).tolist(), next(iter(loader)).tolist()
    assert sorted(first) == list(range(50))
    assert first != second
    cd.manual_seed(5)
    assert next(iter(loader)).tolist() == first
    own = [next(iter(DataLoader(Numbers(9), 9, True, generator=cd.Generator().manual_seed(2)))).tolist() for _ in "ab"]
    assert own[0] == own[1]


def test_workers_are_threads_with_a_worker_info() -> None:
    """worker_init_fn runs first in each thread, and get_worker_info() is None outside of workers."""
    seen: dict[int, str] = {}

    class WorkerNumbers(Numbers):
        def __getitem__(self, index: int) -> int:
            info = get_worker_info()
            assert info is not None
            assert info.dataset is self
            assert seen[info.id] == threading.current_thread().name
            return info.id

    def start(number: int) -> None:
        seen[number] = threading.current_thread().name

    loader = DataLoader(WorkerNumbers(4), batch_size=1, num_workers=2, worker_init_fn=start, prefetch_factor=3)
    assert [batch.item() for batch in loader] == [0, 1, 0, 1]
    assert get_worker_info() is None


def test_errors_of_a_worker_are_raised_in_the_caller() -> None:
    """The caller gets the worker's error. The threads end after an error, and if the caller stops early."""
    before = threading.active_count()
    loader = DataLoader(Numbers(4), sampler=[0, 1, 9], num_workers=2)
    with pytest.raises(IndexError, match="no number 9"):
        list(loader)
    batches = iter(DataLoader(Numbers(100), num_workers=2))
    assert next(batches).item() == 0
    batches.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: TensorDataset(cd.ones(2), cd.ones(3)), AssertionError, "Size mismatch between tensors"),
        (
            lambda: default_collate([np.array(["a", "b"]), np.array(["c", "d"])]),
            TypeError,
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found an array of <U1",
        ),
        (lambda: Dataset()[0], NotImplementedError, "Subclasses of Dataset should implement __getitem__."),
        (
            lambda: iter(IterableDataset()),
            NotImplementedError,
            "Subclasses of IterableDataset should implement __iter__.",
        ),
        (lambda: iter(Sampler()), NotImplementedError, "Subclasses of Sampler should implement __iter__."),
        (lambda: StackDataset(), ValueError, "At least one dataset should be passed"),
        (lambda: StackDataset(Numbers(1), a=Numbers(1)), ValueError, "Supported either ``tuple``- (via ``args``)"),
        (lambda: StackDataset(Numbers(1), Numbers(2)), ValueError, "Size mismatch between datasets"),
        (lambda: ConcatDataset([]), AssertionError, "datasets should not be an empty iterable"),
        (lambda: ConcatDataset([Stream(1)]), AssertionError, "ConcatDataset does not support IterableDataset"),
        (
            lambda: ConcatDataset([Numbers(2)])[-3],
            ValueError,
            "absolute value of index should not exceed dataset length",
        ),
        (lambda: ChainDataset([Numbers(1)]), AssertionError, "ChainDataset only supports IterableDataset"),
        (
            lambda: random_split(Numbers(3), [1, 1]),
            ValueError,
            "Sum of input lengths does not equal the length of the input dataset!",
        ),
        (lambda: random_split(Numbers(3), [1.5, -0.5]), ValueError, "Fraction at index 0 is not between 0 and 1"),
        (
            lambda: RandomSampler(Numbers(3), replacement=1),
            TypeError,
            "replacement should be a boolean value, but got replacement=1",
        ),
        (
            lambda: RandomSampler(Numbers(3), num_samples=-1),
            ValueError,
            "num_samples should be a non-negative integer value, but got num_samples=-1",
        ),
        (
            lambda: WeightedRandomSampler([1], 0),
            ValueError,
            "num_samples should be a positive integer value, but got num_samples=0",
        ),
        (
            lambda: WeightedRandomSampler([1], 1, 1),
            ValueError,
            "replacement should be a boolean value, but got replacement=1",
        ),
        (
            lambda: BatchSampler([], 0, False),
            ValueError,
            "batch_size should be a positive integer value, but got batch_size=0",
        ),
        (lambda: BatchSampler([], 1, 1), ValueError, "drop_last should be a boolean value, but got drop_last=1"),
        (
            lambda: default_collate([object()]),
            TypeError,
            "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists",
        ),
        (lambda: default_collate([[1], [1, 2]]), RuntimeError, "each element in list of batch should be of equal size"),
        (lambda: DataLoader(Numbers(3), num_workers=-1), ValueError, "num_workers option should be non-negative"),
        (
            lambda: DataLoader(Numbers(3), prefetch_factor=2),
            ValueError,
            "prefetch_factor option could only be specified in",
        ),
        (
            lambda: DataLoader(Numbers(3), num_workers=1, prefetch_factor=0),
            ValueError,
            "prefetch_factor option should be positive",
        ),
        (
            lambda: DataLoader(Numbers(3), persistent_workers=True),
            ValueError,
            "persistent_workers option needs num_workers > 0",
        ),
        (
            lambda: DataLoader(Numbers(3), timeout=1),
            ValueError,
            "timeout is for worker processes, and the workers are threads: leave it out",
        ),
        (
            lambda: DataLoader(Numbers(3), pin_memory=True),
            ValueError,
            "pin_memory is not supported: leave it False",
        ),
        (
            lambda: DataLoader(Numbers(3), shuffle=True, sampler=[0]),
            ValueError,
            "sampler option is mutually exclusive with shuffle",
        ),
        (
            lambda: DataLoader(Numbers(3), 2, batch_sampler=[[0]]),
            ValueError,
            "batch_sampler option is mutually exclusive with batch_size",
        ),
        (
            lambda: DataLoader(Numbers(3), None, drop_last=True),
            ValueError,
            "batch_size=None option disables auto-batching",
        ),
        (
            lambda: DataLoader(Stream(3), 0),
            ValueError,
            "batch_size should be a positive integer value, but got batch_size=0",
        ),
        (
            lambda: DataLoader(Stream(3), shuffle=True),
            ValueError,
            "DataLoader with IterableDataset: expected unspecified shuffle option",
        ),
        (
            lambda: DataLoader(Stream(3), sampler=[0]),
            ValueError,
            "DataLoader with IterableDataset: expected unspecified sampler option",
        ),
    ],
)
def test_misuse_of_data_raises_an_error(call: Any, error: type[Exception], text: str) -> None:
    """Each wrong call raises PyTorch's class of error with the reason."""
    with pytest.raises(error, match=re.escape(text)):
        call()
