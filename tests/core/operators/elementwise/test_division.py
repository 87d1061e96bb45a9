"""Quotients, remainders, common divisors and multiples."""

from __future__ import annotations

from typing import Any

import candelabra as cd
import numpy as np
import pytest
from candelabra._records.registry import OPERATORS


def same(got: Any, want: Any) -> None:
    """Assert the same dtype, shape, values and signs, with NaN equal to NaN."""
    array = got.detach().numpy()
    want = np.asarray(want)
    assert array.dtype == want.dtype
    np.testing.assert_array_equal(array, want)
    if want.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(array) & ~np.isnan(array), np.signbit(want) & ~np.isnan(want))


@pytest.mark.parametrize("name", ["gcd", "lcm"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_divisors_and_multiples_are_numpys(name: str, dtype: str) -> None:
    """All pairs agree, also zeros and negative numbers; bodies agree with the kernels."""
    x = np.array([0, 1, 2, 6, 4, 11] if dtype == "uint8" else [0, 1, -2, 6, -4, 11], dtype)
    a, b = cd.tensor(x)[:, None], cd.tensor(x)[None, :]
    want = getattr(np, name)(x[:, None], x[None, :])
    same(getattr(cd, name)(a, b), want)
    same(OPERATORS[name].body(a, b), want)
    same(getattr(cd.tensor(x), name + "_")(cd.tensor(x[::-1].copy())), getattr(np, name)(x, x[::-1]))
    with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'Bool': it takes integer dtypes"):
        getattr(cd, name)(cd.tensor(True), cd.tensor(True))
    with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'Float'"):
        getattr(cd, name)(cd.ones(2), cd.ones(2))


@pytest.mark.parametrize(
    "name", ["floor_divide", "remainder", "fmod", "pow", "bitwise_left_shift", "bitwise_right_shift"]
)
def test_bools_are_no_numbers_to_divide_raise_or_shift(name: str) -> None:
    """Two bools are refused; a bool combined with a number is an integer."""
    yes = cd.tensor([True])
    with pytest.raises(NotImplementedError, match=f"\"{name}\" not implemented for 'Bool'"):
        getattr(cd, name)(yes, yes)
    got = getattr(cd, name)(yes, 1)
    assert got.dtype is cd.int64
    assert got.tolist() == [{"floor_divide": 1, "pow": 1, "bitwise_left_shift": 2}.get(name, 0)]


def test_python_twos_division_from_the_right() -> None:
    """``__rdiv__`` is kept for old programs."""
    got: Any = cd.tensor([2.0, 4.0]).__rdiv__(1)
    assert got.tolist() == [0.5, 0.25]
