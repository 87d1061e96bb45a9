"""Errors in units in the last place."""

from typing import Any

import candelabra as cd
import ml_dtypes
import numpy as np
import pytest
from candelabra_conformance.ulp import ulp_error, ulp_of

KINDS = {
    cd.float16: np.float16, cd.bfloat16: ml_dtypes.bfloat16, cd.float32: np.float32, cd.float64: np.float64,
}  # fmt: skip


@pytest.mark.parametrize("d", KINDS, ids=str)
def test_neighbours_differ_by_one_unit(d: Any) -> None:
    """The next number is one unit away from 1, from the smallest normal number, from 0 and among subnormals."""
    info = ml_dtypes.finfo(KINDS[d])
    for value in (1.0, float(info.smallest_normal), 0.0, 3 * float(info.smallest_subnormal), -1.5):
        start = np.array(value, KINDS[d])
        following = np.nextafter(start, np.array(np.inf, KINDS[d]))
        assert ulp_error(following, start, d) == 1.0, value
        assert ulp_error(start, start, d) == 0.0


@pytest.mark.parametrize("d", KINDS, ids=str)
def test_what_rounds_to_infinity_may_be_infinite(d: Any) -> None:
    """Above the largest number, infinity has error 0, the largest number a small and the other infinity an infinite
    one."""
    largest = np.array(ml_dtypes.finfo(KINDS[d]).max, KINDS[d])
    infinity = np.array(np.inf, KINDS[d])
    assert ulp_error(infinity, np.array(np.inf), d) == 0.0
    assert ulp_error(largest, np.array(np.inf), d) == 1.0
    assert ulp_error(infinity, largest, d) == 1.0
    assert ulp_error(-infinity, infinity, d) == np.inf
    assert ulp_error(infinity, np.array(1.0), d) == np.inf


def test_overflow_of_a_wider_value_is_no_error() -> None:
    """If the expected value in float64 is too large for float16, infinity is correct."""
    assert ulp_error(np.float16(np.inf), np.float64(1e9), cd.float16) == 0.0
    assert ulp_error(np.float16(np.inf), np.float64(65519.0), cd.float16) < 1.0


def test_nan_is_infinitely_far_from_every_number() -> None:
    """NaN agrees only with NaN."""
    found = ulp_error(np.array([np.nan, np.nan, 1.0]), np.array([np.nan, 1.0, np.nan]), cd.float64)
    assert found.tolist() == [0.0, np.inf, np.inf]


def test_fractions_of_a_unit_show() -> None:
    """An expected value of higher precision may lie between two numbers: rounding is off by at most half a unit."""
    third = np.float32(1.0) / np.float32(3.0)
    assert 0.0 < ulp_error(third, np.float64(1) / 3, cd.float32) < 0.5


def test_complex_numbers_have_the_error_of_their_worse_part() -> None:
    """The real part is exact here, and the imaginary part is two units off."""
    found = np.complex64(complex(1, 1 + 2 * 2.0**-23))
    assert ulp_error(found, np.complex64(1 + 1j), cd.complex64) == 2.0


def test_integers_differ_by_their_distance() -> None:
    """The distance may exceed the range of the dtype."""
    info = np.iinfo(np.int64)
    assert ulp_error(np.int64(info.max), np.int64(info.min), cd.int64) == 2.0**64 - 1 == float(2**64)
    assert ulp_error(np.uint8(3), np.uint8(5), cd.uint8) == 2.0
    assert ulp_error(np.array([True]), np.array([False]), cd.bool).tolist() == [1.0]


def test_units_of_complex_numbers_are_those_of_their_parts() -> None:
    """A unit of complex64 is a unit of float32."""
    assert ulp_of(1.0, cd.complex64) == ulp_of(1.0, cd.float32) == 2.0**-23


def test_complex_values_have_no_error_in_a_real_dtype() -> None:
    """Complex numbers measured in units of a real dtype are an error of the caller."""
    with pytest.raises(TypeError, match=r"complex numbers cannot be measured in units of candelabra\.float32"):
        ulp_error(np.complex64(1j), 1.0, cd.float32)
