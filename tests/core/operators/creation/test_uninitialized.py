"""Uninitialised tensors with given strides or a given order of dims."""

from __future__ import annotations

import math
from typing import Any

import candelabra as cd
import pytest


@pytest.mark.parametrize(
    ("size", "stride"), [((2, 3), (1, 2)), ((2, 3), (0, 1)), ((3,), (2,)), ((), ()), ((2, 0), (5, 1))]
)
def test_strided_tensors_have_the_steps_that_are_asked_for(size: Any, stride: Any) -> None:
    """They are writable; ``new_empty_strided`` has the dtype and device of its tensor."""
    x = cd.empty_strided(size, stride, dtype=cd.int32)
    assert x.shape == size
    assert x.dtype is cd.int32
    assert math.prod(size) == 0 or x.stride() == stride
    assert not x._is_view()
    assert cd.ones(1, dtype=cd.float64).new_empty_strided(size, stride).dtype is cd.float64


def test_dims_lie_in_memory_in_the_order_that_is_asked_for() -> None:
    """The physical layout lists the dims from the outermost to the innermost."""
    x = cd.empty_permuted((2, 3, 4), (1, 2, 0))
    assert x.stride() == (1, 8, 2)
    assert cd.empty_permuted((2, 3), (0, 1)).is_contiguous()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: cd.empty_strided((2, 3), (1,)), r"sizes \(2\) must match dimensionality of strides \(1\)"),
        (lambda: cd.empty_strided((2,), (-1,)), r"Negative strides are not supported .*: \[-1\]"),
        (lambda: cd.empty_strided((-2,), (1,)), "negative dimension -2"),
        (lambda: cd.empty_permuted((2, 3), (0,)), r"len\(size\) = 2 is not equal to len\(physical_layout\) = 1"),
        (lambda: cd.empty_permuted((2, 3), (0, 5)), r"between 0 and 1, but got 5 at index 1"),
        (lambda: cd.empty_permuted((2, 3), (0, 0)), "Duplicate dim not allowed"),
    ],
)  # fmt: skip
def test_layouts_that_are_none_are_refused(make: Any, match: str) -> None:
    """Counts, signs and orders are checked."""
    with pytest.raises(RuntimeError, match=match):
        make()


def test_new_makes_by_shape_or_by_values() -> None:
    """The dtype is that of the tensor."""
    x = cd.ones(2, dtype=cd.float64)
    assert x.new(2, 3).shape == (2, 3)
    assert x.new().shape == (0,)
    assert x.new(cd.ones(4, 5).shape).shape == (4, 5)
    made = x.new([1, 2])
    assert made.tolist() == [1, 2]
    assert made.dtype is cd.float64
