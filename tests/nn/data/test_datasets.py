"""Data sets: indexed, combined, split."""

from __future__ import annotations

import re
from typing import Any

import candelabra as cd
import pytest
from candelabra.utils.data import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)

from tests.nn.data.samples import Numbers, Stream


class Several(Numbers):
    """Numbers that are asked for several at once; one too few if told so."""

    def __init__(self, n: int, missing: int = 0) -> None:
        super().__init__(n)
        self.missing = missing

    def __getitems__(self, indices: list[int]) -> list[int]:
        return [index * 10 for index in indices][self.missing :]


def test_datasets_are_indexed_and_combined() -> None:
    """Data sets of tensors, concatenations, subsets and chains have the expected items."""
    tensors = TensorDataset(cd.arange(4), cd.arange(4) * 10)
    assert [t.item() for t in tensors[2]] == [2, 20]
    assert len(tensors) == 4
    both = Numbers(3) + Numbers(2)
    assert [both[i] for i in (0, 3, 4, -1)] == [0, 0, 1, 1]
    assert len(both) == 5
    assert both.cumulative_sizes == [3, 5]
    assert list(both) == [0, 1, 2, 0, 1]
    part = Subset(both, [4, 2])
    assert [part[0], part[1]] == [1, 2]
    assert part.__getitems__([1, 0]) == [2, 1]
    assert Subset(part, [1]).__getitems__([0]) == [2]
    assert Subset(TensorDataset(cd.arange(4)), [3, 1])[[0, 1]][0].tolist() == [3, 1]
    chain = Stream(2) + Stream(1)
    assert list(chain) == [0, 1, 0]
    assert len(chain) == 3


def test_stacked_datasets_return_tuples_or_dicts() -> None:
    """A stack returns the items of its data sets side by side, one index or several at a time."""
    assert StackDataset(Numbers(2), Numbers(2))[1] == (1, 1)
    assert StackDataset(Numbers(2), Several(2)).__getitems__([1, 0]) == [(1, 10), (0, 0)]
    named = StackDataset(a=Numbers(2), b=Several(2))
    assert named[1] == {"a": 1, "b": 1}
    assert named.__getitems__([1]) == [{"a": 1, "b": 10}]
    assert len(named) == 2


def test_random_split_is_disjoint_complete_and_repeatable() -> None:
    """The subsets of lengths or fractions are disjoint and complete; a generator's state determines them."""
    parts = random_split(Numbers(10), [0.5, 0.3, 0.2], generator=cd.Generator().manual_seed(1))
    assert [len(part) for part in parts] == [5, 3, 2]
    assert sorted(i for part in parts for i in part.indices) == list(range(10))
    again = random_split(Numbers(10), [5, 3, 2], generator=cd.Generator().manual_seed(1))
    assert [p.indices for p in again] == [p.indices for p in parts]
    assert [len(part) for part in random_split(Numbers(10), [1 / 3, 1 / 3, 1 / 3])] == [4, 3, 3]


def test_a_fraction_without_items_is_a_warning() -> None:
    """A fraction that rounds to no items gives an empty subset and a warning."""
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0. This might result in an empty dataset."):
        parts = random_split(Numbers(3), [0.9, 0.1])
    assert [len(part) for part in parts] == [3, 0]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: TensorDataset(cd.ones(2), cd.ones(3)), AssertionError, "Size mismatch between tensors"),
        (lambda: Dataset()[0], NotImplementedError, "Subclasses of Dataset should implement __getitem__."),
        (lambda: IterableDataset(), TypeError, "Can't instantiate abstract class IterableDataset"),  # type: ignore[abstract]
        (lambda: StackDataset(), ValueError, "At least one dataset should be passed"),
        (lambda: StackDataset(Numbers(1), a=Numbers(1)), ValueError, "Supported either ``tuple``- (via ``args``)"),
        (lambda: StackDataset(Numbers(1), Numbers(2)), ValueError, "Size mismatch between datasets"),
        (
            lambda: StackDataset(Several(3, missing=1)).__getitems__([0, 1]),
            ValueError,
            "Nested dataset's output size mismatch. Expected 2, got 1",
        ),
        (lambda: ConcatDataset([]), AssertionError, "datasets should not be an empty iterable"),
        (lambda: ConcatDataset([Stream(1)]), AssertionError, "ConcatDataset does not support IterableDataset"),
        (lambda: ConcatDataset([Numbers(2)])[-3], ValueError, "absolute value of index should not exceed dataset"),
        (lambda: ConcatDataset([Numbers(2)])[2], IndexError, "index 2 is out of range for 2 items"),
        (lambda: ChainDataset([Numbers(1)]), AssertionError, "ChainDataset only supports IterableDataset"),
        (
            lambda: random_split(Numbers(3), [1, 1]),
            ValueError,
            "Sum of input lengths does not equal the length of the input dataset!",
        ),
        (lambda: random_split(Numbers(3), [1.5, -0.5]), ValueError, "Fraction at index 0 is not between 0 and 1"),
    ],
)
def test_misuse_of_datasets_raises_an_error(call: Any, error: type[Exception], text: str) -> None:
    """Each wrong call raises PyTorch's class of error with the reason."""
    with pytest.raises(error, match=re.escape(text)):
        call()
