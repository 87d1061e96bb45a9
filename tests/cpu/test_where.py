"""The CPU's kernel of ``where``, which selects by bits for large arrays."""

from __future__ import annotations

import candelabra as cd
import numpy as np
import pytest

DTYPES = [
    "bool", "int8", "uint16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
    "complex128",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [10, 5000])
def test_choosing_by_bits_is_numpys_where(dtype: str, size: int) -> None:
    """Small and large arrays of every dtype, with NaN and signed zeros; operands broadcast, and may be numbers."""
    rng = np.random.default_rng(size)
    mask = rng.random(size) > 0.5
    values = rng.choice([0.0, -0.0, 1.0, -2.0, 3.0] + [np.nan, np.inf] * (dtype[:2] in ("fl", "co")), (2, 3, size))
    with np.errstate(invalid="ignore"):
        x, y = (cd.from_numpy(v.astype(dtype)) if dtype != "bfloat16" else cd.from_numpy(v).bfloat16() for v in values)
    given, one = cd.from_numpy(mask), True if dtype == "bool" else 1
    for got, a, b in (
        (cd.where(given, x, y), x, y),
        (cd.where(given, x, y[0]), x, y[0]),
        (cd.where(given, x[:, :1], y), x[:, :1], y),
        (cd.where(given, x.flip(1).T.contiguous().T, y), x.flip(1), y),
        (cd.where(given, x, one), x, cd.ones((), dtype=x.dtype)),
        (cd.where(given, one, y), cd.ones((), dtype=x.dtype), y),
    ):
        want = np.where(mask, a.numpy(), b.numpy())
        assert got.dtype is x.dtype
        assert got.numpy().tobytes() == want.tobytes()
