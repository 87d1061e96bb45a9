"""Elementwise functions in blocks: the result equals that of one call."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from candelabra_cpu.blocks import BLOCK, apply_in_blocks, blockwise, large_in_blocks, large_in_blocks_inplace

SIZES = [0, 1, 100, BLOCK // 2, BLOCK, 2 * BLOCK + 1, 5 * BLOCK - 3]


def twice_and_more(x: Any, y: Any) -> Any:
    """A function with two passes."""
    return x * 2 + y


@pytest.mark.parametrize("size", SIZES)
def test_blocks_cover_everything_once(size: int, rng: np.random.Generator) -> None:
    """Arrays, and an array with a Python number on either side, are covered."""
    x, y = rng.random((2, size))
    for operands in ((x, y), (x, 3.0), (3.0, y), (x, np.asarray(3.0))):
        np.testing.assert_array_equal(apply_in_blocks(twice_and_more, operands), twice_and_more(*operands))
        np.testing.assert_array_equal(apply_in_blocks(np.arctan2, operands), np.arctan2(*operands))


def test_arrays_of_different_layouts_are_computed_at_once(rng: np.random.Generator) -> None:
    """They broadcast, and need not be contiguous."""
    x, y = rng.random((3, BLOCK)), rng.random((BLOCK, 3))
    np.testing.assert_array_equal(apply_in_blocks(twice_and_more, (x, y.T)), twice_and_more(x, y.T))
    np.testing.assert_array_equal(apply_in_blocks(twice_and_more, (x, x[:1])), twice_and_more(x, x[:1]))


@pytest.mark.parametrize("size", [10, 3 * BLOCK])
def test_the_result_goes_into_an_array_that_is_given(size: int, rng: np.random.Generator) -> None:
    """The target may be an operand, or a strided array."""
    x, y = rng.random((2, size))
    want = twice_and_more(x, y)
    gaps = np.zeros((size, 2))[:, 0]
    assert apply_in_blocks(twice_and_more, (x, y), gaps) is gaps
    np.testing.assert_array_equal(gaps, want)
    assert apply_in_blocks(twice_and_more, (x, y), x) is x
    np.testing.assert_array_equal(x, want)


def test_halves_are_rounded_once(rng: np.random.Generator) -> None:
    """``blockwise`` computes half types in float32."""
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x, y = rng.random((2, 1000)).astype(dtype)
        got = blockwise(twice_and_more)(x, y)
        assert got.dtype == dtype
        want = twice_and_more(x.astype(np.float32), y.astype(np.float32)).astype(dtype)
        np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


def test_small_arrays_and_other_dtypes_have_their_own_kernel(rng: np.random.Generator) -> None:
    """``large_in_blocks`` is for large arrays of float32, float64 and complex numbers."""
    calls: list[str] = []

    def small(x: Any, *rest: Any) -> Any:
        calls.append("small")
        return np.sin(x, *rest)

    kernel, into = large_in_blocks(small, np.sin), large_in_blocks_inplace(small, np.sin)
    large = rng.random(3 * BLOCK)
    np.testing.assert_array_equal(kernel(large), np.sin(large))
    into(large)
    assert calls == []
    kernel(large[:5])
    kernel(large.astype(np.float16))
    into(large[:5])
    assert calls == ["small"] * 3


def test_an_error_in_a_block_is_raised() -> None:
    """The error is raised whichever thread it occurs in, and floating-point warnings are suppressed."""

    def fails(x: Any) -> Any:
        if x[-1] == 1:
            raise ValueError("the last block")
        return x

    x = np.zeros(6 * BLOCK)
    x[-1] = 1
    with pytest.raises(ValueError, match="the last block"):
        apply_in_blocks(fails, (x,))
    assert np.isinf(apply_in_blocks(np.log, (np.zeros(6 * BLOCK),))).all()
    assert np.isinf(apply_in_blocks(lambda v: np.log(v) + 1, (np.zeros(6 * BLOCK),))).all()
