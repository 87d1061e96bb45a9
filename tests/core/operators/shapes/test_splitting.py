"""split, chunk and their unsafe forms."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest


def ramp(*shape: int, dtype: Any = cd.float32) -> Any:
    """Return 0, 1, 2, … in a shape."""
    return cd.arange(int(np.prod(shape))).reshape(shape).to(dtype)


@pytest.mark.parametrize("split", [cd.split_with_sizes, cd.unsafe_split_with_sizes, cd.Tensor.split_with_sizes])
def test_parts_of_given_sizes(split: Any) -> None:
    """Sizes of zero are allowed."""
    parts = split(ramp(5, 2), [2, 0, 3], 0)
    assert [p.shape for p in parts] == [(2, 2), (0, 2), (3, 2)]
    assert parts[2].tolist() == [[4, 5], [6, 7], [8, 9]]


def test_unsafe_parts_are_those_of_split_and_chunk() -> None:
    """They propagate gradients as any view does."""
    x = ramp(5).requires_grad_()
    assert [p.tolist() for p in cd.unsafe_split(x, 2)] == [[0, 1], [2, 3], [4]]
    first, second = x.unsafe_chunk(2)
    (first.sum() + 2 * second.sum()).backward()
    assert x.grad.tolist() == [1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("sizes", "match"),
    [([2, 2], "expects split_sizes to sum exactly to 5"), ([2, -2, 5], "split_sizes have only non-negative entries")],
)
def test_sizes_that_do_not_split_are_refused(sizes: Any, match: str) -> None:
    """They must not be negative, and their sum must be the dim's size."""
    with pytest.raises(RuntimeError, match=match):
        cd.split_with_sizes(cd.ones(5), sizes)


def test_a_number_does_not_split() -> None:
    """A 0-d tensor has no dim to split."""
    with pytest.raises(RuntimeError, match="split expects at least a 1-dimensional tensor"):
        cd.tensor(1.0).split(1)
    with pytest.raises(RuntimeError, match="split expects at least a 1-dimensional tensor"):
        cd.split_with_sizes(cd.tensor(1.0), [1])


def test_the_size_has_two_names() -> None:
    """``split_size`` is the name of PyTorch's method; exactly one of the two is given."""
    assert [p.tolist() for p in ramp(3).split(split_size=2)] == [[0, 1], [2]]
    assert [p.tolist() for p in ramp(3).split(split_size=[1, 2], dim=0)] == [[0], [1, 2]]
    for options in ({}, {"split_size_or_sections": 1, "split_size": 1}):
        with pytest.raises(TypeError, match="expected exactly one of the arguments 'split_size_or_sections' and 'spl"):
            cd.split(ramp(3), **options)
