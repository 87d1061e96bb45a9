"""Arrays for the tests of candelabra.array_api, and the comparison with NumPy's results."""

from __future__ import annotations

from typing import Any

import numpy as np
from candelabra.array_api import Array

DTYPES = {
    "bool": ["bool"],
    "integer": ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"],
    "real": ["float32", "float64"],
    "complex": ["complex64", "complex128"],
}
FLOATING = [*DTYPES["real"], *DTYPES["complex"]]
NUMERIC = [*DTYPES["integer"], *FLOATING]
REAL_NUMERIC = [*DTYPES["integer"], *DTYPES["real"]]


def sample(rng: np.random.Generator, dtype: str, *shape: int, low: float = -3, high: float = 9) -> Any:
    """Return a NumPy array of small numbers that every dtype holds (nonnegative ones for unsigned dtypes)."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) > 0.5
    if kind in "iu":
        return rng.integers(max(low, 0) if kind == "u" else low, high, shape).astype(dtype)
    values = rng.uniform(low, high, shape)
    return (values + 1j * rng.uniform(low, high, shape) if kind == "c" else values).astype(dtype)


def check(got: Any, want: Any) -> None:
    """Assert that the result is an Array with the same dtype, shape and values (to the dtype's precision)."""
    assert isinstance(got, Array)
    array, want = got.detach().numpy(), np.asarray(want)
    assert array.dtype == want.dtype
    assert array.shape == want.shape
    tolerance = 1e-5 if want.dtype.itemsize // (1 + (want.dtype.kind == "c")) == 4 else 1e-12
    np.testing.assert_allclose(array, want, rtol=tolerance, atol=tolerance)
