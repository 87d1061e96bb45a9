"""Samplers: orders of indices."""

from __future__ import annotations

import re
import tracemalloc
from itertools import islice
from typing import Any

import candelabra as cd
import pytest
from candelabra.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from tests.nn.data.samples import Numbers

# The indices of each rank without shuffling, by PyTorch 2.13: {(items, replicas, drop_last): [of rank 0, …]}
REPLICAS = {
    (5, 2, False): [[0, 2, 4], [1, 3, 0]],
    (5, 2, True): [[0, 2], [1, 3]],
    (1, 4, False): [[0], [0], [0], [0]],
    (1, 4, True): [[], [], [], []],
    (7, 3, False): [[0, 3, 6], [1, 4, 0], [2, 5, 1]],
    (7, 3, True): [[0, 3], [1, 4], [2, 5]],
}


def test_samplers_return_their_orders() -> None:
    """Samplers return indices in order, permuted, as a subset, with replacement, by weight, and in batches."""
    assert list(SequentialSampler(Numbers(3))) == [0, 1, 2]
    assert sorted(RandomSampler(Numbers(20))) == list(range(20))
    twice = list(RandomSampler(Numbers(4), num_samples=10))
    assert [sorted(twice[:4]), sorted(twice[4:8]), len(twice)] == [[0, 1, 2, 3], [0, 1, 2, 3], 10]
    assert set(RandomSampler(Numbers(2), replacement=True, num_samples=50)) == {0, 1}
    assert sorted(SubsetRandomSampler([5, 7])) == [5, 7]
    assert len(SubsetRandomSampler([5, 7])) == 2
    assert set(WeightedRandomSampler([0.0, 1.0, 0.0], 5)) == {1}
    assert sorted(WeightedRandomSampler(cd.ones(3), 3, replacement=False)) == [0, 1, 2]
    assert len(WeightedRandomSampler([1.0], 5)) == 5
    assert WeightedRandomSampler([1, 2], 1).weights.dtype is cd.float64
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert [len(BatchSampler(range(5), 2, drop)) for drop in (False, True)] == [3, 2]


@pytest.mark.parametrize("replacement", [False, True])
def test_a_random_order_repeats_with_its_seed(replacement: bool) -> None:
    """A generator, or else the default one, determines the order, whatever is drawn between two indices."""
    own = [list(RandomSampler(Numbers(9), replacement, generator=cd.Generator().manual_seed(3))) for _ in "ab"]
    assert own[0] == own[1]
    sampler = RandomSampler(Numbers(9), replacement, 300)
    cd.manual_seed(1)
    first = list(sampler)
    cd.manual_seed(1)
    second = []
    for index in sampler:
        second.append(index)
        if len(second) % 100 < 2:
            cd.rand(1)
    assert first == second
    assert first != list(sampler)


def test_many_samples_take_no_memory() -> None:
    """Ten thousand million indices with replacement are drawn as they are asked for."""
    sampler = RandomSampler(Numbers(1000), replacement=True, num_samples=10**10)
    assert len(sampler) == 10**10
    tracemalloc.start()
    drawn = list(islice(sampler, 10_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(drawn) == 10_000
    assert len(set(drawn)) == 1000
    assert peak < 10_000_000


@pytest.mark.parametrize(("items", "replicas", "drop_last"), REPLICAS)
def test_replicas_read_the_same_parts_as_pytorchs(items: int, replicas: int, drop_last: bool) -> None:
    """Without shuffling, replicas take every n-th index; the first ones are repeated, or the last ones dropped."""
    samplers = [
        DistributedSampler(Numbers(items), replicas, rank, shuffle=False, drop_last=drop_last)
        for rank in range(replicas)
    ]
    expected = REPLICAS[items, replicas, drop_last]
    assert [list(sampler) for sampler in samplers] == expected
    assert [len(sampler) for sampler in samplers] == [len(part) for part in expected]
    assert samplers[0].total_size == samplers[0].num_samples * replicas


def test_shuffled_replicas_are_disjoint_in_every_epoch() -> None:
    """The shuffled parts of all replicas are disjoint and complete; the order follows from seed and epoch."""
    samplers = [DistributedSampler(Numbers(30), 3, rank, seed=4) for rank in range(3)]
    parts = [list(sampler) for sampler in samplers]
    assert sorted(index for part in parts for index in part) == list(range(30))
    assert parts[0] == list(samplers[0])
    samplers[0].set_epoch(1)
    assert samplers[0].epoch == 1
    assert parts[0] != list(samplers[0])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: iter(Sampler()), NotImplementedError, "Subclasses of Sampler should implement __iter__."),
        (
            lambda: RandomSampler(Numbers(3), replacement=1),  # type: ignore[arg-type]
            TypeError,
            "replacement should be a boolean value, but got replacement=1",
        ),
        (
            lambda: RandomSampler(Numbers(3), num_samples=0),
            ValueError,
            "num_samples should be a positive integer value, but got num_samples=0",
        ),
        (
            lambda: RandomSampler(Numbers(0)),
            ValueError,
            "num_samples should be a positive integer value, but got num_samples=0",
        ),
        (
            lambda: WeightedRandomSampler([1], 0),
            ValueError,
            "num_samples should be a positive integer value, but got num_samples=0",
        ),
        (
            lambda: WeightedRandomSampler([1], 1, 1),  # type: ignore[arg-type]
            ValueError,
            "replacement should be a boolean value, but got replacement=1",
        ),
        (
            lambda: WeightedRandomSampler([[1.0]], 1),  # type: ignore[list-item]
            ValueError,
            "weights should be a 1d sequence but given weights have shape (1, 1)",
        ),
        (
            lambda: list(WeightedRandomSampler([1, 1], 3, False)),
            RuntimeError,
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
        ),
        (
            lambda: BatchSampler([], 0, False),
            ValueError,
            "batch_size should be a positive integer value, but got batch_size=0",
        ),
        (
            lambda: BatchSampler([], 1, 1),  # type: ignore[arg-type]
            ValueError,
            "drop_last should be a boolean value, but got drop_last=1",
        ),
        (lambda: DistributedSampler(Numbers(3)), ValueError, "Default process group has not been initialized"),
        (
            lambda: DistributedSampler(Numbers(3), 2, 2),
            ValueError,
            "Invalid rank 2, rank should be in the interval [0, 1]",
        ),
    ],
)
def test_misuse_of_samplers_raises_an_error(call: Any, error: type[Exception], text: str) -> None:
    """Each wrong call raises PyTorch's class of error with the reason."""
    with pytest.raises(error, match=re.escape(text)):
        call()
