"""Computation in a wider dtype: of large arrays a buffer at a time, of any layout, with one rounding."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from candelabra_cpu.precision import BUFFER, elementwise_in_float64, in_float32, in_float64

LARGE = (3, BUFFER + 7)


def difference(x: Any, scale: float, y: Any) -> Any:
    """A function with a number between two arrays; it loses digits in float32."""
    assert not isinstance(x, np.ndarray) or x.dtype in (np.float64, np.complex128)
    return (x + 1000.0) * scale - (y + 1000.0)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.complex64])
def test_large_arrays_give_what_small_ones_give(dtype: Any, rng: np.random.Generator) -> None:
    """Contiguous, transposed, strided and broadcast arrays are computed in float64 and rounded once."""
    x, y = (rng.standard_normal((2, *LARGE))).astype(dtype)
    wide = elementwise_in_float64(difference)
    operands = ((x, y), (x.T, y.T), (x[:, ::2], y[:, ::2]), (x, y[:1]), (x, y[:, :1]), (x, np.asarray(y[0, 0])))
    for a, b in operands:
        found = wide(a, 1.0, b)
        exact = difference(
            a.astype(np.result_type(dtype, np.float64)), 1.0, b.astype(np.result_type(dtype, np.float64))
        )
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.astype(exact.dtype), exact.astype(dtype).astype(exact.dtype))
    assert wide(x.T, 1.0, y.T).flags.f_contiguous


def test_results_are_rounded_to_the_dtype_of_the_first_array() -> None:
    """Real results of complex numbers become float32, results of other dtypes stay as they are."""
    z = np.array([3 + 4j], np.complex64)
    modulus, where = in_float64(lambda x: (np.abs(x), np.abs(x) > 1))(z)
    assert (modulus.dtype, where.dtype) == (np.float32, np.bool_)
    assert modulus.tolist() == [5.0]
    half = np.array([2048.0, 1.0], np.float16)
    assert in_float32(lambda x: x.sum(keepdims=True) - x[0])(half).tolist() == [1.0]


def test_wide_dtypes_and_integers_are_not_converted() -> None:
    """float64, complex128 and integers reach the function as they are."""
    for x in (np.zeros(2), np.zeros(2, np.complex128), np.zeros(2, np.int64)):
        assert in_float64(lambda x: x)(x) is x
